"""The `[adapters.slack]` section, checked once at start-up."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from amends.spi import AdapterContext

SecretReference = Annotated[str, Field(pattern=r"^(env|file):.+$")]
UserId = Annotated[str, Field(pattern=r"^[UW][A-Z0-9]+$")]


class SlackOptions(BaseModel):
    """What a site says about its workspace. Unknown keys are refused; secrets are references, never values."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: str = Field(default="https://slack.com/api", pattern=r"^https?://")
    token: SecretReference = "env:SLACK_BOT_TOKEN"  # noqa: S105 - a reference to the token, not the token
    people: dict[str, UserId] = Field(default_factory=dict[str, UserId])  # name in `person:{name}` -> Slack user id
    files: str = ""  # the folder that uploads come from, beside amends.toml; empty: nothing may be uploaded
    max_file_bytes: int = Field(default=20_000_000, ge=1, le=1_000_000_000)
    removals_told: str = ""  # who hears of a removed message; empty: its thread, which may be gone with it
    timeout_seconds: float = Field(default=30.0, gt=0, le=300)
    probe_deadline_seconds: float = Field(default=300.0, gt=0)
    absent_final_after_seconds: float = Field(default=60.0, ge=0)
    clock_margin_seconds: float = Field(default=300.0, ge=0)  # how far their clock may be from ours
    schedule_lead_seconds: float = Field(default=900.0, ge=60)  # a message that fires sooner could not be taken back

    def url(self, method: str) -> str:
        """The address of a Web API method."""
        return f"{self.base_url.rstrip('/')}/{method}"


def options_of(context: AdapterContext) -> SlackOptions:
    """The adapter's options. Raises `ValueError` in one line that names section and key, never a value (rule 10)."""
    try:
        return SlackOptions.model_validate(dict(context.options))
    except ValidationError as error:
        found = [
            (".".join(map(str, item["loc"])), item["msg"].removeprefix("Value error, ")) for item in error.errors()
        ]
        wrong = "; ".join(f"`{key}`: {said}" if key else said for key, said in found)
        raise ValueError(f"[adapters.{context.name}] {wrong}") from None

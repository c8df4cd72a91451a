"""The `[adapters.jira]` section, checked once at start-up."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from amends.spi import AdapterContext

SecretReference = Annotated[str, Field(pattern=r"^(env|file):.+$")]


class JiraOptions(BaseModel):
    """What a site says about its Jira. Unknown keys are refused; secrets are references, never values.

    `customer_facing`: people outside read what an issue says or a webhook tells them; then a transition or comment
    cannot be unread, so it is irreversible and leaves the outbox only after an approval. `transition` may be declared
    `compensatable` where nobody outside hears of it. `create_told` names the person who hears that a created issue was
    deleted again; without one, created issues stay, and creating is irreversible.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: str = Field(pattern=r"^https?://")
    token: SecretReference = "env:JIRA_API_TOKEN"  # noqa: S105 - a reference to the token, not the token
    email: str = ""  # with it, Basic authentication of an API token; without, the token is sent as Bearer
    transition: Literal["irreversible", "compensatable"] = "irreversible"
    customer_facing: bool = True
    create_told: str = ""
    comment_marker: Literal["property", "text"] = "property"  # `text` where comment properties cannot be set
    timeout_seconds: float = Field(default=30.0, gt=0, le=300)
    probe_deadline_seconds: float = Field(default=300.0, gt=0)
    search_deadline_seconds: float = Field(default=900.0, gt=0)  # search is eventually consistent: look for long
    absent_final_after_seconds: float = Field(default=60.0, ge=0)
    clock_margin_seconds: float = Field(default=300.0, ge=0)  # how far their clock may be from ours

    @model_validator(mode="after")
    def _readers_outside_cannot_unread(self) -> Self:
        if self.transition == "compensatable" and self.customer_facing:
            raise ValueError(
                '`transition = "compensatable"` needs `customer_facing = false`: what customers read stays read'
            )
        return self

    def url(self, path: str) -> str:
        """The address of a REST v3 path such as `issue/BILL-12`."""
        return f"{self.base_url.rstrip('/')}/rest/api/3/{path}"

    def authorization(self, secret: Callable[[str], str]) -> str:
        """The Authorization header, with the token resolved now."""
        token = secret(self.token)
        if not self.email:
            return f"Bearer {token}"
        return "Basic " + base64.b64encode(f"{self.email}:{token}".encode()).decode()


def options_of(context: AdapterContext) -> JiraOptions:
    """The adapter's options. Raises `ValueError` in one line that names section and key, never a value (rule 10)."""
    try:
        return JiraOptions.model_validate(dict(context.options))
    except ValidationError as error:
        found = [
            (".".join(map(str, item["loc"])), item["msg"].removeprefix("Value error, ")) for item in error.errors()
        ]
        wrong = "; ".join(f"`{key}`: {said}" if key else said for key, said in found)
        raise ValueError(f"[adapters.{context.name}] {wrong}") from None

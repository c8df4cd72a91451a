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

    `api` says which product it is: `cloud` (REST v3) or `data_center` (Data Center and Server, REST v2).
    `customer_facing`: people outside read what an issue says or a webhook tells them; then a transition or comment
    cannot be unread, so it is irreversible and leaves the outbox only after an approval. `transition` may be declared
    `compensatable` where nobody outside hears of it. `create_told` names the person who hears that a created issue was
    deleted again; without one, created issues stay, and creating is irreversible.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: str = Field(pattern=r"^https?://")
    api: Literal["cloud", "data_center"] = "cloud"
    token: SecretReference = "env:JIRA_API_TOKEN"  # noqa: S105 - a reference to the token, not the token
    email: str = ""  # with it, Basic: account of an API token, or a user name; without, the token is sent as Bearer
    transition: Literal["irreversible", "compensatable"] = "irreversible"
    way_back_steps: int = Field(default=3, ge=1, le=5)  # the longest way back through the workflow; 1: direct only
    customer_facing: bool = True
    create_told: str = ""
    comment_marker: Literal["property", "text"] | None = None  # None: `property` on Cloud, `text` on Data Center
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

    @property
    def cloud(self) -> bool:
        """True for Jira Cloud, False for Data Center and Server."""
        return self.api == "cloud"

    @property
    def person_field(self) -> str:
        """What names a person: an account id on Cloud, a user name on Data Center."""
        return "accountId" if self.cloud else "name"

    @property
    def marks_text(self) -> bool:
        """True if a comment carries its marker as its first line instead of a property."""
        return self.comment_marker == "text" or (self.comment_marker is None and not self.cloud)

    def url(self, path: str) -> str:
        """The address of a path such as `issue/BILL-12`."""
        return f"{self.base_url.rstrip('/')}/rest/api/{3 if self.cloud else 2}/{path}"

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

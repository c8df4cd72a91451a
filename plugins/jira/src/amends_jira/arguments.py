"""Arguments of the Jira capabilities. Strict: unknown fields and wrong types are refused; none holds a secret."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from amends.spi import Json

IssueKey = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*-[1-9]\d*$")]
ProjectKey = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
Text = Annotated[str, Field(min_length=1, max_length=32_000)]
Name = Annotated[str, Field(min_length=1, max_length=255)]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TransitionArgs(_Arguments):
    """Move an issue to a status. `transition` names the way where several lead there; `fields` fills its screen."""

    key: IssueKey
    to: Name
    transition: str = ""
    fields: dict[str, Json] = Field(default_factory=dict[str, Json])


class CommentArgs(_Arguments):
    """A comment, as plain text; blank lines separate paragraphs."""

    key: IssueKey
    text: Text


class CreateArgs(_Arguments):
    """A new issue. `fields` holds further fields by id, in Jira's own form."""

    project: ProjectKey
    issuetype: Name
    summary: Name
    description: str = ""
    fields: dict[str, Json] = Field(default_factory=dict[str, Json])


class AssignArgs(_Arguments):
    """An issue's assignee by account id; null unassigns."""

    key: IssueKey
    account_id: Annotated[str, Field(min_length=1, max_length=128)] | None

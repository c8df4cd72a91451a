"""Arguments of the Jira capabilities. Strict: unknown fields and wrong types are refused; none holds a secret."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from amends.spi import Json

IssueKey = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*-[1-9]\d*$")]
ProjectKey = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
Text = Annotated[str, Field(min_length=1, max_length=32_000)]
Name = Annotated[str, Field(min_length=1, max_length=255)]
Label = Annotated[str, Field(pattern=r"^\S+$", max_length=255)]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TransitionArgs(_Arguments):
    """Move an issue to a status. `transition` names the way where several lead there; `fields` fills its screen.

    A field that can only be added to, such as a worklog or a comment, gets the one thing to add.
    """

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
    """An issue's assignee by account id, on Data Center by user name; null unassigns."""

    key: IssueKey
    account_id: Annotated[str, Field(min_length=1, max_length=128)] | None


class LabelsArgs(_Arguments):
    """Labels to add to an issue and to remove from it; at least one, and none in both."""

    key: IssueKey
    add: list[Label] = Field(default_factory=list[Label], max_length=50)
    remove: list[Label] = Field(default_factory=list[Label], max_length=50)

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        named = [*self.add, *self.remove]
        if not named or len(set(named)) != len(named):
            raise ValueError("name at least one label, and each only once")
        return self


class LinkArgs(_Arguments):
    """A link of a type such as `Blocks`: `key` blocks `target`."""

    key: IssueKey
    type: Name
    target: IssueKey


class RemoteLinkArgs(_Arguments):
    """A link from an issue to a page elsewhere; `relationship` is the heading under which Jira shows it."""

    key: IssueKey
    url: Annotated[str, Field(pattern=r"^https?://\S+$", max_length=2000)]
    title: Name
    relationship: Annotated[str, Field(max_length=255)] = ""

"""The rules a contract file is made of: what is sent, how answers read, how an effect is found again.

Data only. What the types cannot say is checked by `checking`; what the rules do is in `messages`, `verdicts`,
`paging` and `finding`.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from amends.spi import Alternative, Json

ArgumentType: TypeAlias = Literal["text", "integer", "number", "decimal", "boolean", "list", "object", "secret"]
States: TypeAlias = dict[str, tuple[Json, ...]]


def _as_alternatives(value: object) -> object:
    return (cast("object", value),) if isinstance(value, dict) else value


AnyOf: TypeAlias = Annotated[tuple[States, ...], BeforeValidator(_as_alternatives)]  # one table, or several: any holds


class Rule(BaseModel):
    """Base of all rules: immutable, no unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ArgumentRule(Rule):
    """One argument of the operation. A `secret` is given as a reference and resolved when it is sent."""

    type: ArgumentType = "text"
    required: bool = True
    default: Json = None
    pattern: str = ""
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    describe: str = ""


class SuccessRule(Rule):
    """Which 2xx answers are a success: any, or those with these statuses and these values in the body.

    A wanted value may be a template: `{marker}` or an argument, as the provider must give it back.
    """

    statuses: tuple[int, ...] = ()
    where: States = Field(default_factory=dict[str, tuple[Json, ...]])


class RefusalRule(Rule):
    """What an answer with this status, error code and body means: `done` says that the wanted state already holds.

    GraphQL says no with a 200, so any status may be named.
    """

    status: int
    code: str = ""
    where: States = Field(default_factory=dict[str, tuple[Json, ...]])
    means: Literal["refused", "again", "ambiguous", "done"]


class OperationRule(Rule):
    """A 202: where its operation is read (a path in the body or `header:location`) and how that reads.

    `gone`: the provider has forgotten how it ended, as a 404 or 410 says too; then only the effect itself can tell.
    """

    url: str = "header:location"
    status: str = "status"
    done: tuple[Json, ...]
    failed: tuple[Json, ...]
    gone: tuple[Json, ...] = ()
    reference: str


class MessageRule(Rule):
    """What every request has. `graphql` is the text of a GraphQL document, sent as it stands with `variables`."""

    path: str = Field(default="", pattern=r"^(/.*)?$")
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    query: dict[str, str] = Field(default_factory=dict[str, str])
    body: dict[str, Json] | None = None
    graphql: str = ""
    variables: dict[str, Json] = Field(default_factory=dict[str, Json])


class RequestRule(MessageRule):
    """The one mutating request of a call. `document` is where the thing stands in the answer's body."""

    method: Literal["POST", "PUT", "PATCH", "DELETE"] = "POST"
    document: str = ""
    encoding: Literal["json", "form"] = "json"
    answers: Literal["json", "json_or_empty", "any"] = "json"
    success: SuccessRule = SuccessRule()
    refusals: tuple[RefusalRule, ...] = ()
    operation: OperationRule | None = None


class ReadRule(MessageRule):
    """A read by path. `absent` are the statuses that say there is none; `document` is where it stands in the body,
    and nothing there is absence too.
    """

    method: Literal["GET", "POST"] = "GET"
    document: str = ""
    absent: tuple[int, ...] = (404, 410)


class CursorRule(Rule):
    """The next page is named by `item` of the last item, or by `page` of the page itself (a field or `header:…`)."""

    parameter: str = ""
    item: str = ""
    page: str = ""


class NumberRule(Rule):
    """Pages are counted: `first`, then `step` more each time (`step` = page size where an offset is asked for)."""

    parameter: str = ""
    first: int = 1
    step: int = Field(default=1, ge=1)


class ListRule(MessageRule):
    """A read of a list. `match` is checked on our side too: a server may ignore a filter it does not know. A path with
    `*` matches if any item on the way does.

    Paging: one of `cursor`, `number`, and `link` (`header:link`, or the field with the next page's address). `more`
    says that there is another page, `total` how many items there are on all pages; without either a counted list is
    read until a page is empty. Where `parameter` is empty the page's name is what `{page}` says.
    """

    method: Literal["GET", "POST"] = "GET"
    items: str = "data"  # `orders.*.payments` collects the payments of every order
    match: dict[str, Json]
    more: str = ""
    total: str = ""
    cursor: CursorRule | None = None
    number: NumberRule | None = None
    link: str = ""
    pages: int = Field(default=50, ge=1, le=1000)


class FindRule(Rule):
    """How the effect is found again, and which of its states mean that it is there.

    `by_search` asks an index that may lag: what it shows is there, what it does not show proves nothing.
    """

    by_id: ReadRule | None = None
    by_list: ListRule | None = None
    by_search: ListRule | None = None
    present: AnyOf = ()
    gone: AnyOf = ()
    state: dict[str, str] = Field(default_factory=dict[str, str])

    @property
    def listing(self) -> ListRule | None:
        """The list, or where there is none the search."""
        return self.by_list or self.by_search


class ImageRule(Rule):
    """For an operation that sets a state: the fields of `find.by_id` that make the before- and after-image."""

    fields: tuple[str, ...] = Field(min_length=1)


class OwnerRule(Rule):
    """Whose the thing must be: a field of every document of ours, and the value it must have."""

    field: str
    equals: str


class RungRule(Alternative):
    """One rung of the compensation ladder, with the request that climbs it where `undo` is `own`."""

    request: RequestRule | None = None
    default_permit: bool = True  # the recovery Service may do it by the adapter's default policy

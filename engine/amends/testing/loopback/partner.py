"""A partner's REST API: reservations, payment adjustments, submissions, notifications, paid reports, and more beside.

Six collections share one shape (create, read, list by metadata, named actions) and are described as data. Stripe-like
idempotency keys hold on every POST. Carrier instructions and 202 exports live in modules of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, ClassVar, Literal

from amends.testing.loopback import idempotency, partner_carrier, partner_exports
from amends.testing.loopback.system import Action, Route, System, Unit, marker_of
from amends.testing.loopback.wire import ApiError, Doc, Request, Response, iso, lookup

FieldType = Literal["text", "count", "amount"]


@dataclass(frozen=True, slots=True)
class Step:
    """A named action on an object: from which statuses, to which, and the error code from each other status."""

    name: str
    allowed: tuple[str, ...]
    becomes: str
    undoes: bool
    refusals: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Collection:
    """One kind of object: its name (`reservation`), id prefix, required fields, first status and actions."""

    kind: str
    prefix: str
    required: Mapping[str, FieldType]
    status: str
    steps: tuple[Step, ...] = ()

    @property
    def name(self) -> str:
        """The plural, as it stands in the path."""
        return f"{self.kind}s"


_FINANCE = {"settling": "already_settling", "settled": "already_settling", "failed": "adjustment_failed"}
COLLECTIONS = (
    Collection(
        "reservation",
        "res_",
        {"sku": "text", "quantity": "count", "order": "text"},
        "held",
        (Step("release", ("held",), "released", undoes=True, refusals={"released": "already_released"}),),
    ),
    Collection(
        "adjustment",
        "adj_",
        {"order": "text", "amount_minor": "amount", "currency": "text"},
        "queued",
        (
            Step(
                "void",
                ("queued",),
                "voided",
                undoes=True,
                refusals={**_FINANCE, "voided": "already_voided", "reversed": "already_reversed"},
            ),
            Step(
                "reverse",
                ("settling", "settled"),
                "reversed",
                undoes=True,
                refusals={
                    "queued": "not_settling",
                    "voided": "already_voided",
                    "reversed": "already_reversed",
                    "failed": "adjustment_failed",
                },
            ),
        ),
    ),
    Collection(
        "submission",
        "sub_",
        {"order": "text", "kind": "text"},
        "submitted",
        (
            Step(
                "cancel",
                ("submitted",),
                "cancelled",
                undoes=True,
                refusals={"cancelled": "already_cancelled", "approved": "already_approved"},
            ),
        ),
    ),
    Collection("notification", "ntf_", {"order": "text", "message": "text"}, "sent"),
    Collection("report", "rep_", {"subject": "text"}, "ready"),
)
_GONE = frozenset({"released", "voided", "reversed", "cancelled", "failed"})
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class Partner(System):
    """The partner system. Accounts are tenants: a token sees the objects of its own account only."""

    name = "partner"
    settings: ClassVar[Doc] = {
        "tokens": {"partner-token": "acct_main", "other-token": "acct_other"},
        "idempotency": True,
        "key_ttl_s": 86_400,
        "stock": {},
        "fee_minor": 250,
        **partner_exports.SETTINGS,
    }

    def routes(self) -> Sequence[Route]:
        """Five routes per collection at most, then carrier instructions and exports."""
        routes: list[Route] = []
        for collection in COLLECTIONS:
            path = f"/v1/{collection.name}"
            routes += [
                Route("POST", path, partial(_create, collection)),
                Route("GET", path, partial(list_objects, collection.name), reads=True),
                Route("GET", f"{path}/{{id}}", partial(_get, collection), reads=True),
            ]
            routes += [
                Route("POST", f"{path}/{{id}}/{step.name}", partial(_step, collection, step))
                for step in collection.steps
            ]
        return [*routes, *partner_carrier.routes(), *partner_exports.routes(list_objects)]

    def actions(self) -> Mapping[str, Action]:
        """`set_status`, `settle`, `lock_carrier`, `set_operation`."""
        return {
            "set_status": set_status,
            "settle": _settle,
            "lock_carrier": partner_carrier.lock,
            "set_operation": partner_exports.set_operation,
        }

    def authenticate(self, unit: Unit, request: Request) -> str:
        """Bearer tokens, each of one account."""
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        account = unit.setting("tokens").get(token)
        if account is None:
            raise ApiError(401, "invalid_token", "no valid bearer token was given")
        return str(account)

    def render_error(self, error: ApiError) -> Response:
        """`{"error": {"type", "code", "message", …}}`."""
        kind = _TYPES.get(
            error.status, "api_error" if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error"
        )
        body = {"type": kind, "code": error.code, "message": error.message, **error.extra}
        return Response(error.status, {"error": body}, error.headers)

    def claim_key(self, unit: Unit, request: Request) -> str | None:
        """The idempotency key, if it counts."""
        return idempotency.key_of(unit, request)

    def replay(self, unit: Unit, request: Request) -> Response | None:
        """The stored answer for the key."""
        return idempotency.replay(unit, request)

    def remember(self, unit: Unit, request: Request, response: Response, *, forced: bool = False) -> None:
        """Store the answer under the key."""
        idempotency.remember(unit, request, response, forced=forced)

    def tick(self, unit: Unit) -> None:
        """Exports finish by themselves."""
        partner_exports.tick(unit)


def list_objects(collection: str, unit: Unit, request: Request) -> Response:
    """One page, newest first. Filters: `metadata.<key>=`, `order=`, any field; pages: `limit=`, `starting_after=`."""
    found = [doc for doc in unit.objects.all(collection) if _wanted(unit, request, doc)][::-1]
    after = request.query.get("starting_after")
    if after is not None:
        places = [index for index, doc in enumerate(found) if doc["id"] == after]
        if not places:
            raise ApiError(400, "resource_missing", f"no such object: {after}", param="starting_after")
        found = found[places[0] + 1 :]
    limit = min(int(request.query.get("limit", "10")), 100)
    page: Doc = {"object": "list", "url": request.path, "has_more": len(found) > limit, "data": found[:limit]}
    return Response(200, page)


def set_status(unit: Unit, parameters: Doc) -> Doc:
    """Control: `{"collection", "id", "status"}` as the provider itself would (a refund that fails after all)."""
    collection, key = parameters["collection"], parameters["id"]
    doc = unit.objects.peek(collection, key)
    if doc is None:
        raise ApiError(404, "resource_missing", f"no such object: {collection} {key}")
    gone = parameters["status"] in _GONE
    doc = {**doc, "status": parameters["status"], "updated": iso(unit.now())}
    unit.objects.put(collection, key, doc, undo=gone)
    if gone:
        unit.effects.removed(doc["object"], key)
    else:
        unit.effects.restored(doc["object"], key)
    return doc


def _settle(unit: Unit, parameters: Doc) -> Doc:
    """Control: `{"id", "status": "settling" | "settled"}` moves an adjustment on."""
    return set_status(
        unit, {"collection": "adjustments", "id": parameters["id"], "status": parameters.get("status", "settling")}
    )


def _create(collection: Collection, unit: Unit, request: Request) -> Response:
    fields = _validated(collection, request.body)
    if collection.kind == "reservation":
        _take_stock(unit, fields)
    key = unit.new_id(collection.prefix)
    stamp = iso(unit.now())
    doc: Doc = {
        **fields,
        "id": key,
        "object": collection.kind,
        "account": unit.origin.account,
        "status": collection.status,
        "metadata": request.body.get("metadata") or {},
        "created": stamp,
        "updated": stamp,
    }
    if collection.kind == "report":
        doc["fee_minor"] = unit.setting("fee_minor")
        doc["content"] = f"report on {fields['subject']}"
    unit.objects.put(collection.name, key, doc)
    about = f"order:{doc['order']}" if "order" in doc else f"subject:{doc['subject']}"
    unit.effects.created(collection.kind, about, key, marker_of(unit, doc["metadata"]), fields)
    return Response(201, doc)


def _get(collection: Collection, unit: Unit, request: Request) -> Response:
    return Response(200, _own(unit, unit.objects.get(collection.name, request.params["id"]), request))


def _step(collection: Collection, step: Step, unit: Unit, request: Request) -> Response:
    key = request.params["id"]
    doc = _own(unit, unit.objects.get(collection.name, key), request)
    if doc["status"] not in step.allowed:
        code = step.refusals.get(doc["status"], "invalid_status")
        raise ApiError(409, code, f"{collection.kind} {key} is {doc['status']}", current=doc["status"])
    doc = {**doc, "status": step.becomes, "updated": iso(unit.now())}
    unit.objects.put(collection.name, key, doc, undo=step.undoes)
    if step.undoes:
        unit.effects.removed(collection.kind, key)
    return Response(200, doc)


def _own(unit: Unit, doc: Doc | None, request: Request) -> Doc:
    """The object, if it exists and belongs to the caller's account (another actor may see every account)."""
    if doc is None or (unit.origin.account and doc["account"] != unit.origin.account):
        raise ApiError(404, "resource_missing", f"no such object: {request.params['id']}")
    return doc


def _wanted(unit: Unit, request: Request, doc: Doc) -> bool:
    if unit.origin.account and doc["account"] != unit.origin.account:
        return False
    filters = {name: value for name, value in request.query.items() if name not in ("limit", "starting_after")}
    return all(lookup(doc, name) == value for name, value in filters.items())


def _validated(collection: Collection, body: Doc) -> Doc:
    for name, kind in collection.required.items():
        value = body.get(name)
        if value is None or value == "":
            raise ApiError(422, "parameter_missing", f"missing required parameter: {name}", param=name)
        if not _fits(value, kind):
            raise ApiError(422, "parameter_invalid", f"invalid {name}: {value!r}", param=name)
    return {name: value for name, value in body.items() if name != "metadata"}


def _fits(value: Any, kind: FieldType) -> bool:
    if kind == "text":
        return isinstance(value, str)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and (kind == "amount" or value > 0)


def _take_stock(unit: Unit, fields: Doc) -> None:
    stock = unit.setting("stock")
    if fields["sku"] not in stock:
        return
    held = sum(
        doc["quantity"]
        for doc in unit.objects.truth("reservations")
        if doc["sku"] == fields["sku"] and doc["status"] == "held"
    )
    if held + fields["quantity"] > stock[fields["sku"]]:
        raise ApiError(409, "out_of_stock", f"not enough of {fields['sku']}", param="sku")

"""A partner operation as a capability: everything it does is in its declaration."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import BaseModel

from amends.spi import (
    Accepted,
    Call,
    Capability,
    Contract,
    Done,
    Json,
    NotSent,
    Observation,
    Prepared,
    Question,
    Receipt,
)
from amends.spi.http import Ambiguous, HttpAnswer, HttpRequest, HttpSender
from amends_http.arguments import arguments_model
from amends_http.declaration import Declaration
from amends_http.finding import OPERATION, Finder
from amends_http.messages import Messages
from amends_http.rules import RequestRule
from amends_http.template import BadValueError, MissingValueError, Scope, lookup
from amends_http.verdicts import Meaning, document_of, field_of, own_statuses, owned, state_of, verdict

# An undo that finds nothing has nothing left to do; the separate read after it decides (field case A-03).
_GONE = frozenset({404, 410})


class PartnerOperation(Capability):
    """One declared operation. Sends one mutating request per `do` and `undo`, with the marker and key in it."""

    contract: Contract
    arguments: type[BaseModel]

    def __init__(
        self,
        declaration: Declaration,
        contract: Contract,
        values: Mapping[str, str],
        messages: Messages,
        sender: HttpSender,
    ) -> None:
        self.contract = contract
        self.arguments = arguments_model(declaration)
        self._declaration = declaration
        self._values = values
        self._messages = messages
        self._sender = sender
        self._subject = declaration.subject
        self._finder = Finder(declaration, values, messages, sender)

    def prepare(self, question: Question) -> Prepared:
        """Read the before-image, if there is one. What could not be written later fails here, before the intent."""
        before = self._finder.image(question) if self._declaration.image is not None else {}
        scope = {**self._messages.scope(question, self._values), "before": before}
        self._messages.mutating(self._declaration.request, scope, dict.fromkeys(self._declaration.secrets(), ""))
        return Prepared(before=before, subject_digest=self._subject)

    def do(self, call: Call) -> Receipt:
        scope = self._messages.scope(call, self._values)
        rule = self._declaration.request
        meaning, answer = self._send(call, rule, scope)
        if meaning == "accepted":
            return self._accepted(rule, answer)
        document = document_of(rule, answer)
        reference = self._reference(answer, document)
        state = state_of(self._declaration, document, answer.headers)
        named = {name: lookup(document, path) for name, path in self._declaration.output.items()}
        after = self._finder.image_of(document, answer.headers, scope) if self._declaration.image is not None else {}
        output: dict[str, Json] = {**({"reference": reference} if reference else {}), **state, **named}
        return Done(effect={**state, **named}, reference=reference, output=output, after=after)

    def probe(self, question: Question) -> Observation:
        rule = self.contract.probe
        return self._finder.look(question, counting=rule is not None and rule.counts)

    def verify_undone(self, question: Question) -> Observation:
        """A separate read of this very thing: a twin that is still there is not this one."""
        return self._finder.look(question, counting=False)

    def undo(self, call: Call) -> Receipt:
        rung = self._declaration.rung(call.rung)
        if rung is None or rung.request is None:
            raise NotSent(f"the contract file has no request for the rung `{call.rung}`", code="no_such_rung")
        observed = call.observed
        scope = self._messages.scope(
            call,
            self._values,
            observed=dict(observed.state) if observed else {},
            undo_marker=call.undo_marker,
            undo_key=call.undo_key,
            reference=call.reference or (observed.reference if observed else "") or None,
        )
        _, answer = self._send(call, rung.request, scope, gone=_GONE)
        state = state_of(self._declaration, document_of(rung.request, answer), answer.headers)
        return Done(effect=state, reference=call.reference, output=state)

    def _send(
        self, call: Call, rule: RequestRule, scope: Scope, gone: frozenset[int] = frozenset()
    ) -> tuple[Meaning, HttpAnswer]:
        request = self._request(call, rule, scope)
        answer = self._sender.send(call, request, own_statuses(rule) | gone)
        return verdict(rule, answer, self._declaration.error_code, scope, gone), answer

    def _request(self, call: Call, rule: RequestRule, scope: Scope) -> HttpRequest:
        try:
            secrets = {name: self._resolved(call, name) for name in self._declaration.secrets()}
            return self._messages.mutating(rule, scope, secrets)
        except (MissingValueError, BadValueError) as problem:
            raise NotSent(f"{self.contract.capability} was not sent: {problem}", code="invalid_request") from None
        except Exception as error:  # noqa: BLE001 - nothing has been opened yet, so nothing was sent
            raise NotSent(
                f"{self.contract.capability} was not sent: {type(error).__name__}", code="secret_unavailable"
            ) from None

    def _resolved(self, call: Call, name: str) -> str:
        reference = call.args.get(name)
        return call.secret(reference) if isinstance(reference, str) else ""

    def _accepted(self, rule: RequestRule, answer: HttpAnswer) -> Accepted:
        address = field_of(answer, rule.operation.url) if rule.operation is not None else None
        if not isinstance(address, str) or not address:
            raise Ambiguous(
                f"{answer.request.name} was accepted but names no operation", code="no_operation", status=answer.status
            )
        try:
            self._messages.own_address(address)
        except BadValueError as problem:
            detail = f"{answer.request.name} was accepted, but {problem}"
            raise Ambiguous(detail, code="foreign_operation", status=answer.status) from None
        return Accepted(operation=address, effect={OPERATION: address})

    def _reference(self, answer: HttpAnswer, document: Mapping[str, Json]) -> str:
        """The provider's reference, if it is well-formed and what it names is ours. Raises `Ambiguous` otherwise."""
        rule = self._declaration.reference
        if not owned(self._declaration, document, self._values):
            raise Ambiguous(
                f"{answer.request.name} answered with something of another account",
                code="foreign",
                status=answer.status,
            )
        if rule is None:
            return ""
        value = lookup(document, rule.field)
        if not isinstance(value, str) or re.fullmatch(rule.pattern, value) is None:
            raise Ambiguous(
                f"{answer.request.name} answered without a well-formed `{rule.field}`",
                code="bad_reference",
                status=answer.status,
            )
        return value

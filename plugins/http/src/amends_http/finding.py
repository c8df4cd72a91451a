"""Finding an effect again: by the provider's reference, by list with our marker, by operation, or as a state's image.

A read that gives no answer, a list that cannot be read to its end and a thing that is not ours are all `inconclusive`:
none of them proves that nothing is there.
"""

from __future__ import annotations

from collections.abc import Mapping

from amends.spi import Json, Observation, Question
from amends.spi.http import HttpSender, Unreadable
from amends_http.declaration import Declaration
from amends_http.messages import Messages
from amends_http.paging import items
from amends_http.rules import ImageRule, ListRule, OperationRule, ReadRule
from amends_http.template import BadValueError, MissingValueError, Scope, lookup, render, roots, values_at
from amends_http.verdicts import field_of, holds_any, owned, readable, state_of

OPERATION = "operation"  # the key under which a 202's operation stands in the recorded effect
EXISTS = "exists"


class Finder:
    """Asks the partner about one kind of effect. Read-only."""

    def __init__(
        self, declaration: Declaration, values: Mapping[str, str], messages: Messages, sender: HttpSender
    ) -> None:
        self._declaration = declaration
        self._values = values
        self._messages = messages
        self._sender = sender

    def look(self, question: Question, *, counting: bool) -> Observation:
        """What is there of this action's effect; `counting` also finds twins that bear the same marker.

        A twin is an action of its own with its twin's marker: it is looked up by its own reference only.
        """
        twin = question.action_id != question.marker
        try:
            return self._look(question, self._messages.scope(question, self._values), counting=counting and not twin)
        except Unreadable as lost:
            later = lost.retry_after_seconds
            return Observation(seen="inconclusive", detail=f"{lost.code}: {lost}", retry_after_seconds=later)
        except (MissingValueError, BadValueError) as problem:
            return Observation(seen="inconclusive", detail=str(problem))

    def image(self, question: Question) -> dict[str, Json]:
        """The state as it stands now, for a before-image. Raises `Unreadable`, `MissingValueError`, `BadValueError`."""
        scope = self._messages.scope(question, self._values)
        document, headers = self._read(self._by_id(), question, scope)
        return self._image(self._image_rule(), document, headers)

    def image_of(self, document: Mapping[str, Json], headers: Mapping[str, str], scope: Scope) -> dict[str, Json]:
        """The after-image: what the answer says, and where it is silent what we asked for."""
        rule = self._image_rule()
        asked = self._asked(scope)
        fields = {name: lookup(document, name) if name in document else asked.get(name) for name in rule.fields}
        return {EXISTS: True, **fields, **state_of(self._declaration, document, headers)}

    def _look(self, question: Question, scope: Scope, *, counting: bool) -> Observation:
        if self._declaration.image is not None:
            return self._compare(question, scope, self._declaration.image)
        operation = question.effect.get(OPERATION)
        rule = self._declaration.request.operation
        if rule is not None and isinstance(operation, str) and not question.reference:
            return self._poll(question, scope, rule, operation)
        return self._find(question, scope, question.reference, counting=counting)

    def _find(self, question: Question, scope: Scope, reference: str, *, counting: bool = False) -> Observation:
        find = self._declaration.find
        known = reference or (find.by_id is not None and not _names_reference(find.by_id))
        if find.listing is not None and (counting or find.by_id is None or not known):
            only = reference if find.by_id is None and not counting else ""
            observed = self._listed(question, scope, find.listing, only)
            if observed.seen != "absent" or not known or find.by_id is None:
                return _with_own(observed, reference)
        if find.by_id is not None and known:
            document, headers = self._read(find.by_id, question, {**scope, "reference": reference})
            if self._declaration.effect.changes == "removes":
                return self._removed(document, headers, reference)
            return self._judge([document] if document is not None else [], headers, reference, reference)
        return Observation(seen="inconclusive", detail="there is no reference, and no list to look it up in")

    def _listed(self, question: Question, scope: Scope, rule: ListRule, only: str) -> Observation:
        """What the list shows of ours; `only`: of the one with this reference, where nothing reads it by itself."""
        wanted = render(dict(rule.match), scope)
        match = wanted if isinstance(wanted, dict) else {}
        if set(match) != set(rule.match) or not match:
            return Observation(seen="inconclusive", detail="the list cannot be matched: a value is missing")
        ours = [
            item
            for item in items(rule, question, scope, self._messages, self._sender)
            if all(value in values_at(item, path) for path, value in match.items())
            and only in {"", self._reference(item)}
        ]
        if not ours and rule is self._declaration.find.by_search:
            return Observation(seen="inconclusive", detail="a search that finds nothing proves nothing")
        return self._judge(ours, {}, "", question.reference)

    def _judge(
        self, documents: list[dict[str, Json]], headers: Mapping[str, str], reference: str, own: str
    ) -> Observation:
        """What the documents that bear our reference or marker say; `own` is the reference that we know."""
        foreign = [document for document in documents if not self._ours(document)]
        if foreign:
            return Observation(
                seen="inconclusive", detail="what bears our reference or marker belongs to another account"
            )
        find = self._declaration.find
        present = [document for document in documents if not find.present or holds_any(find.present, document)]
        gone = [document for document in documents if holds_any(find.gone, document)]
        present = [document for document in present if document not in gone]
        present.sort(key=lambda document: self._reference(document) != own)  # of several, what is told is ours
        shown = (present or gone or documents or [{}])[0]
        state = state_of(self._declaration, shown, headers)
        found = self._reference(shown) or reference
        if len(present) > 1:
            twins = tuple(self._reference(document) for document in present)
            return Observation(seen="many", state=state, reference=found, twins=twins)
        if present:
            return Observation(seen="applied", state=state, reference=found, effect=self._effect(shown, state))
        if len(gone) == len(documents):
            return Observation(seen="absent", state=state, reference=found if gone else "")
        return Observation(seen="diverged", state=state, reference=found, detail="it is in a state no rule names")

    def _removed(self, document: dict[str, Json] | None, headers: Mapping[str, str], reference: str) -> Observation:
        """A removal has its effect where nothing stands any more, and has none where the thing is there."""
        if document is None:
            return Observation(seen="applied", reference=reference)
        still = self._judge([document], headers, reference, reference)
        turned = {"applied": "absent", "absent": "applied"}
        return still.model_copy(update={"seen": turned.get(still.seen, still.seen)})

    def _compare(self, question: Question, scope: Scope, rule: ImageRule) -> Observation:
        document, headers = self._read(self._by_id(), question, scope)
        now = self._image(rule, document, headers)
        # The state holds the whole image: where the answer was lost it is recorded as the after-image.
        state = {**now, "had_before": question.before.get(EXISTS)}
        if not question.before:
            return Observation(seen="inconclusive", state=state, detail="no before-image was recorded")
        if _same(now, question.before, rule):
            return Observation(seen="absent", state=state)
        wanted = question.after or {EXISTS: True, **self._asked(scope)}
        if _same(now, wanted, rule):
            return Observation(seen="applied", state=state, effect={name: now[name] for name in rule.fields})
        changed = [name for name in rule.fields if now.get(name) != wanted.get(name)]
        return Observation(seen="diverged", state=state, detail=f"somebody changed {', '.join(changed) or EXISTS}")

    def _poll(self, question: Question, scope: Scope, rule: OperationRule, address: str) -> Observation:
        answer = self._sender.read(question, self._messages.following(address))
        status = field_of(answer, rule.status)
        final = status in rule.done or status in rule.failed
        if not answer.ok or status in rule.gone or (final and self._declaration.find.listing is not None):
            # Forgotten by the provider, or final: what bears our marker decides. A gateway that replays an earlier 202
            # names the operation of another call, and its end says nothing of ours.
            return self._find(question, scope, "")
        if status in rule.failed:
            return Observation(seen="absent", state={"operation_status": status}, detail="the operation failed")
        if status in rule.done:
            reference = field_of(answer, rule.reference)
            return self._find(question, scope, reference if isinstance(reference, str) else "")
        state: dict[str, Json] = {"operation_status": status}
        later = answer.retry_after_seconds()
        detail = "the operation is not final"
        return Observation(seen="inconclusive", state=state, detail=detail, retry_after_seconds=later)

    def _read(
        self, rule: ReadRule, question: Question, scope: Scope
    ) -> tuple[dict[str, Json] | None, Mapping[str, str]]:
        request = self._messages.reading(rule, scope)
        answer = readable(rule, self._sender.read(question, request, own_statuses=rule.absent))
        if answer.status in rule.absent:
            return None, {}
        holder, _, name = rule.document.rpartition(".")
        outer = lookup(answer.document(), holder) if holder else answer.document()
        document = lookup(outer, name) if name else outer
        if name and isinstance(outer, dict) and name in outer and document is None:
            return None, {}
        if not isinstance(document, dict) or not document:
            raise Unreadable(f"{answer.request.name} answered with no object", code="undecodable")
        return document, answer.headers

    def _image(self, rule: ImageRule, document: dict[str, Json] | None, headers: Mapping[str, str]) -> dict[str, Json]:
        if document is None:
            return {EXISTS: False}
        if not self._ours(document):
            raise Unreadable("what stands there belongs to another account", code="foreign")
        fields = {name: lookup(document, name) for name in rule.fields}
        return {EXISTS: True, **fields, **state_of(self._declaration, document, headers)}

    def _asked(self, scope: Scope) -> dict[str, Json]:
        body = render(dict(self._declaration.request.body or {}), scope)
        return body if isinstance(body, dict) else {}

    def _ours(self, document: Mapping[str, Json]) -> bool:
        return owned(self._declaration, document, self._values)

    def _reference(self, document: Mapping[str, Json]) -> str:
        reference = self._declaration.reference
        value = lookup(document, reference.field) if reference is not None else None
        return value if isinstance(value, str) else ""

    def _effect(self, document: Mapping[str, Json], state: Mapping[str, Json]) -> dict[str, Json]:
        named = {name: lookup(document, path) for name, path in self._declaration.output.items()}
        return {**state, **named}

    def _by_id(self) -> ReadRule:
        rule = self._declaration.find.by_id
        if rule is None:
            raise MissingValueError("the contract does not say where the state is read")
        return rule

    def _image_rule(self) -> ImageRule:
        rule = self._declaration.image
        if rule is None:
            raise MissingValueError("the contract declares no image")
        return rule


def _names_reference(rule: ReadRule) -> bool:
    """False if the thing is read by what the call was given, such as the charge that it captures."""
    return any("reference" in roots(part) for part in (rule.path, rule.query, rule.body, rule.variables))


def _with_own(observed: Observation, reference: str) -> Observation:
    """Only somebody else bears our marker: that is a twin too, and not the thing our reference names."""
    if observed.seen != "applied" or not reference or observed.reference == reference:
        return observed
    return observed.model_copy(update={"seen": "many", "reference": reference, "twins": (observed.reference,)})


def _same(one: Mapping[str, Json], other: Mapping[str, Json], rule: ImageRule) -> bool:
    """True if two images agree in existence and in every declared field."""
    return all(one.get(name) == other.get(name) for name in (EXISTS, *rule.fields))

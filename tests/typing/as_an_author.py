"""Type-checked only: the SPI as an author of adapters sees it. A line marked `type: ignore` must be an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, assert_type

from pydantic import BaseModel

from amends import spi


class Arguments(BaseModel):
    """Of the capability below."""

    name: str


class Everything(spi.Capability):
    """Overrides each method with the types the engine passes."""

    contract = spi.Contract(
        capability="shop.reserve",
        summary="reserve",
        effect=spi.Effect(kind="reservation", system="shop", resource="reservation:{name}"),
        readers=spi.Readers(audience="machine", where="the shop"),
        reversibility="reversible",
        identity=spi.Identity(fields=("name",)),
        keying=spi.Keying(kind="keyed", parameter="Idempotency-Key"),
        probe=spi.ProbeRule(strength="list", absent_final_after_seconds=2, counts=True),
        reference=spi.Reference(field="id"),
        compensation=(
            spi.Alternative(name="cancel", when={"status": ("held",)}, safe_when=(spi.Outcome.SUCCEEDED,)),
            spi.Alternative(name="ask", undo="escalate", retry=spi.Retry(attempts=1)),
        ),
        signal=None,
        limits=spi.Limits(timeout_seconds=5),
        escalation=spi.EscalationRule(queue="shop"),
        input={"name": "String"},
    )
    arguments = Arguments

    def prepare(self, question: spi.Question) -> spi.Prepared:
        assert_type(question.args, Mapping[str, spi.Json])
        assert_type(question.reference, str)
        assert_type(question.sent_at_us, int | None)
        assert_type(question.secret("env:TOKEN"), str)
        return spi.Prepared(before={"held": False}, allocated={"id": "r-1"}, content_digest="sha256:0")

    def do(self, call: spi.Call) -> spi.Receipt:
        assert_type(call.still_wanted(), bool)
        assert_type(call.observed, spi.Observation | None)
        if call.rung:
            raise spi.Refused("no", code="taken", again=True, retry_after_seconds=1.5)
        if not call.still_wanted():
            raise spi.NotSent("nobody waits", code="not_wanted")
        return spi.Accepted(operation="https://shop.example/operations/1")

    def probe(self, question: spi.Question) -> spi.Observation:
        return spi.Observation(seen="many", twins=("r-1", "r-2"), state={"status": "held"})

    def undo(self, call: spi.Call) -> spi.Done:
        assert_type(call.undo_key, str)
        return spi.Done(effect={"id": call.reference}, reference=call.reference, output={}, parts=("stock",))

    def verify_undone(self, question: spi.Question) -> spi.Observation:
        return spi.Observation(seen="absent")

    def drill(self, question: spi.Question) -> tuple[str, str]:
        return "sha256:0", "held and released"

    def place(self, question: spi.Question) -> str:
        return "slack:C012"


class Note(spi.Corrector):
    """A corrector needs its scheme, and has its arguments."""

    scheme = "board"
    contract = Everything.contract

    def do(self, call: spi.Call) -> spi.Done:
        arguments: type[BaseModel] = self.arguments
        assert arguments is spi.CorrectionArgs
        return spi.Done()

    def probe(self, question: spi.Question) -> spi.Observation:
        return spi.Observation(seen="inconclusive", detail="the board is closed")


class Bell:
    """A notifier by its shape alone."""

    name = "bell"

    def deliver(self, notice: spi.Notice) -> spi.Delivery:
        assert_type(notice.kind, Literal["escalation", "report"])
        return spi.Delivery(delivered=True)


def ask(run_id: str) -> tuple[spi.CheckAnswer, str]:
    """A success condition."""
    return "passed", run_id


def examine() -> list[spi.DoctorFinding]:
    """An examination."""
    return [spi.DoctorFinding("warning", "shop", "closed", "wait")]


@spi.hookimpl
def amends_register_capabilities(context: spi.AdapterContext, registry: spi.Registry) -> None:
    """Every way to register."""
    assert_type(context.options, Mapping[str, spi.Json])
    if "folder" not in context.options:
        raise spi.ConfigError("`folder` is missing", hint="add it")
    registry.capability(Everything())
    registry.capability(Note())
    registry.check(spi.Check("shop_open", ask))
    registry.policies(spi.PolicyContribution(policies={"shop.cedar": ""}, tests={}))
    registry.notifier(Bell())
    registry.doctor(examine)


def mistakes(registry: spi.Registry, call: spi.Call) -> None:
    """What the checkers must notice."""
    spi.Effect(kind="x", system="x", resource="x:{y}", changes="makes")  # type: ignore[arg-type]
    spi.Readers(audience="everybody", where="here")  # type: ignore[arg-type]
    spi.Observation(seen="perhaps")  # type: ignore[arg-type]
    spi.Done(efect={})  # type: ignore[call-arg]
    spi.Contract(capability="shop.reserve")  # type: ignore[call-arg]
    spi.Check("shop_open", lambda run_id: ("maybe", run_id))  # type: ignore[arg-type, return-value]
    registry.capability(Bell())  # type: ignore[arg-type]
    call.reference = "another"  # type: ignore[misc]


class Half(spi.Capability):
    """Without `probe` it cannot be made."""

    contract = Everything.contract
    arguments = Arguments

    def do(self, call: spi.Call) -> spi.Done:
        return spi.Done()


def no_half_capabilities() -> spi.Capability:
    """The checkers say so before the engine does."""
    return Half()  # type: ignore[abstract]

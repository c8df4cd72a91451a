"""The book: a run's state, and the only way to add to it.

`record` loads the state, lets a pure function decide what happened, folds it, and commits events and rows with a
compare-and-set on the run's head; if somebody else wrote first, it decides anew on the newer state. Nothing else in
the runtime writes to the journal.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from amends.core import events as e
from amends.core import fold
from amends.core.errors import (
    ConfigError,
    Conflict,
    CorruptLedger,
    Denied,
    Fenced,
    InternalError,
    InvalidInput,
    UnknownName,
)
from amends.core.redaction import hide, redact
from amends.core.rows import (
    QuarantineRow,
    Row,
    RunRow,
    RunState,
    SealedRow,
)
from amends.core.status import RunStatus
from amends.ports.journal import Commit, EventRecord, Refused, RowKey, StoredRow
from amends.runtime.holding import claim_changes
from amends.runtime.kit import Kit
from amends.runtime.records import changed, record_of, rows_of, state_of, write_of
from amends.runtime.sealing import archived_state

_ATTEMPTS = 50
_REMEMBERED = 512  # states of runs kept at hand
_STRIPES = 64  # locks shared by runs, so that ten thousand runs need no ten thousand locks


@dataclass(frozen=True, slots=True)
class Draft:
    """A fact to record; `action_id` is empty for facts about the run."""

    body: e.Body
    action_id: str = ""


Decide = Callable[[RunState], Sequence[Draft]]


class Frozen(Denied):
    """The run does not accept forward intents any more: it is recovering, committing or over."""

    code = "run_frozen"


class Paused(Denied):
    """A pause is in force."""

    code = "paused"


class GivenUp(Denied):
    """The caller gave up before the intent was durable; nothing was sent."""

    code = "given_up"


class Book:
    """Reads and appends runs. Safe for threads; one run's appends from this process are serialised."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._lock = threading.Lock()
        self._run_locks = tuple(threading.RLock() for _ in range(_STRIPES))
        self._cache: dict[str, RunState] = {}
        self._seen_system_head = 0

    def state(self, run_id: str) -> RunState:
        """The run as recorded now; a sealed one from its archive file. Raises `UnknownName`, or `CorruptLedger` after
        quarantining an unreadable run.
        """
        known = self._current(run_id)
        if known is not None:
            return known
        rows = self._kit.journal.load(run_id)
        if not rows:
            raise UnknownName(f"no run `{run_id}`", hint="`amends runs list` shows them", run_id=run_id)
        sealed = next((row for row in rows if row.key.kind == "sealed"), None)
        if sealed is not None:
            return self._archived(SealedRow.model_validate_json(sealed.body))
        try:
            state = state_of(rows)
        except (ValidationError, StopIteration) as error:
            self._quarantine(run_id, str(error).splitlines()[0])
            raise CorruptLedger(
                f"run `{run_id}` cannot be read back and is quarantined",
                hint="run `amends ledger verify`; its other runs go on",
                run_id=run_id,
            ) from error
        return self._remember(run_id, state)

    def _archived(self, row: SealedRow) -> RunState:
        if self._kit.archive is None:
            raise ConfigError(
                f"run `{row.run_id}` is sealed in `{row.file}`, and this engine has no archive",
                hint="open the engine of the project that sealed it",
                run_id=row.run_id,
            )
        return archived_state(self._kit.journal, self._kit.archive(), row)

    def _current(self, run_id: str) -> RunState | None:
        """The state this process knows, if nobody has written since: a long run is not read anew for every look."""
        with self._lock:
            known = self._cache.get(run_id)
        stored = self._kit.journal.row(RowKey("run", run_id)) if known else None
        if known is None or stored is None:
            return None
        return known if stored.body == known.run.model_dump_json() else None

    def last_known(self, run_id: str) -> RunState:
        """The newest state this process has seen, without asking the journal if it can be helped."""
        with self._lock:
            known = self._cache.get(run_id)
        return known or self.state(run_id)

    def runs(self, rows: Iterable[StoredRow]) -> list[RunRow]:
        """The runs that can be read back; each of the others is quarantined and stops none of them (rule 16)."""
        found: list[RunRow] = []
        for row in rows:
            try:
                found.append(RunRow.model_validate_json(row.body))
            except ValidationError as error:
                self._quarantine(row.run_id, str(error).splitlines()[0])
        return found

    def open(self, run_id: str, body: e.RunOpened, *then: Decide) -> RunState:
        """Record a new run and, in the same commit, what `then` decides, one after the other.

        Raises `Conflict` if tenant, workflow and key already name one, `InvalidInput` if a name holds a secret: masked,
        it would name another run.
        """
        if self._clean(body) != body:
            raise InvalidInput(
                "what names a run holds a secret that may not enter the ledger",
                hint="keep secrets out of workflow, key, agent, initiator, owner and intent_ref",
            )
        state, records = self._extend(None, run_id, [Draft(body)], epoch=1)
        for decide in then:
            state, more = self._extend(state, run_id, decide(state), epoch=1)
            records += more
        claim = next(iter(state.claims.values()))
        command = Commit(
            stream=run_id,
            expected_head=0,
            events=records,
            rows=[write_of(row) for row in rows_of(state)],
            expected_versions={RowKey("claim", claim.claim): 0},
        )
        answer = self._kit.journal.commit(command)
        if isinstance(answer, Refused):
            self._refuse(run_id, answer)
        return self._remember(run_id, state)

    def record(
        self,
        run_id: str,
        decide: Decide,
        *,
        epoch: int | None = None,
        allowed: frozenset[RunStatus] | None = None,
        forbidden: Sequence[RowKey] = (),
        wanted: Callable[[], bool] | None = None,
        event_epoch: int | None = None,
    ) -> RunState:
        """Append what `decide` returns for the newest state; the state after it (the same state for no drafts).

        `epoch`: the driver's epoch, compared with the run's (`None`: people and late evidence are not fenced).
        `allowed`: the run statuses in which this may be written. `forbidden`: rows that must not be active.
        Raises `Fenced`, `Frozen`, `Paused`, `GivenUp`, `Conflict` (a claim is held), `JournalBusy`,
        `JournalUnavailable`; nothing is written then.
        """
        with self._run_lock(run_id):
            state = self.state(run_id)
            for _ in range(_ATTEMPTS):
                _refuse_late_comers(state, epoch, allowed)
                drafts = list(decide(state))
                if not drafts:
                    return state
                after, records = self._extend(state, run_id, drafts, epoch=event_epoch or epoch or state.run.epoch)
                claims = claim_changes(self._kit.journal, state, after, _intended(drafts))
                command = Commit(
                    stream=run_id,
                    expected_head=state.run.head,
                    events=records,
                    rows=[write_of(row) for row in (*changed(state, after), *claims.rows)],
                    epoch=epoch,
                    allowed_statuses=None if allowed is None else frozenset(s.value for s in allowed),
                    expected_versions=claims.versions,
                    forbidden=tuple(forbidden),
                    wanted=wanted,
                )
                answer = self._kit.journal.commit(command)
                if not isinstance(answer, Refused):
                    return self._remember(run_id, after)
                state = self.state(run_id)
                if answer.reason not in {"head_moved", "row_changed"}:
                    self._refuse(run_id, answer)
            raise InternalError(
                f"run `{run_id}` changed under {_ATTEMPTS} attempts to write",
                hint="another driver writes without pause; look at `amends runs show`",
            )

    def forget(self, run_id: str) -> None:
        """Read the run anew next time: another process may have written."""
        with self._lock:
            self._cache.pop(run_id, None)

    def record_system(self, bodies: Iterable[e.Body]) -> None:
        """Append facts that belong to no run, with the rows they set. Raises `ConfigError` for policies that hold a
        secret: masked, no decision could be derived from them again.
        """
        bodies = [
            self._clean_policies(body) if isinstance(body, e.BundleRecorded) else self._clean(body) for body in bodies
        ]
        journal = self._kit.journal
        for _ in range(_ATTEMPTS):
            head = self._system_head()
            now = self._kit.clock.now_us()
            made = [
                e.Event(self._kit.ids.new(), now, e.SYSTEM_STREAM, head + n, "", 0, body)
                for n, body in enumerate(bodies, start=1)
            ]
            rows = self._system_rows(made)
            command = Commit(
                stream=e.SYSTEM_STREAM,
                expected_head=head,
                events=[record_of(event, None) for event in made],
                rows=[write_of(row) for row in rows],
            )
            answer = journal.commit(command)
            if not isinstance(answer, Refused):
                return
        raise InternalError("the system stream is written without pause", hint="try again")

    def _system_head(self) -> int:
        while newer := self._kit.journal.events(e.SYSTEM_STREAM, after_run_seq=self._seen_system_head):
            self._seen_system_head = newer[-1].event.run_seq
        return self._seen_system_head

    # --- internals ----------------------------------------------------------------------------------------

    def _run_lock(self, run_id: str) -> threading.RLock:
        return self._run_locks[hash(run_id) % _STRIPES]

    def _remember(self, run_id: str, state: RunState) -> RunState:
        with self._lock:
            self._cache.pop(run_id, None)
            self._cache[run_id] = state
            while len(self._cache) > _REMEMBERED:
                self._cache.pop(next(iter(self._cache)))  # the one that was written or read longest ago
        return state

    def _extend(
        self, state: RunState | None, run_id: str, drafts: Sequence[Draft], *, epoch: int
    ) -> tuple[RunState, list[EventRecord]]:
        head = state.run.head if state else 0
        ts_us = max(self._kit.clock.now_us(), state.run.ledger_us if state else 0)
        records: list[EventRecord] = []
        for n, draft in enumerate(drafts, start=1):
            event = e.Event(
                self._kit.ids.new(), ts_us, run_id, head + n, draft.action_id, epoch, self._clean(draft.body)
            )
            state = fold.apply(state, event)
            records.append(record_of(event, state))
        if state is None:
            raise InternalError("nothing was drafted", hint="report this")
        return state, records

    def _clean(self, body: e.Body) -> e.Body:
        """The body without secrets (rule 10). Raises `ConfigError` if a name that must stay readable holds one."""
        dumped = body.model_dump(mode="json")
        cleaned = redact(dumped, self._kit.secrets.revealed())
        if cleaned == dumped:
            return body
        try:
            return type(body).model_validate(cleaned)
        except ValidationError:  # its words would show the secret
            raise ConfigError(
                f"`{body.kind}` cannot be recorded: a secret is part of a name in it that must stay readable",
                hint="choose another secret, or another name",
            ) from None

    def _clean_policies(self, body: e.BundleRecorded) -> e.BundleRecorded:
        secrets = self._kit.secrets.revealed()
        for name, source in body.sources.items():
            if not name.startswith(e.SHIPPED_POLICIES) and hide(source, secrets) != source:
                raise ConfigError(
                    f"the policy source `{name}` holds a secret, and policies are kept in the ledger",
                    hint="take it out; if it is only a word that the secret happens to be, choose another secret",
                )
        return body

    def _refuse(self, run_id: str, answer: Refused) -> None:
        match answer.reason:
            case "stale_epoch":
                raise _taken_over(run_id, answer.detail)
            case "status":
                raise _frozen(run_id, answer.detail)
            case "forbidden":
                raise Paused("a pause or quarantine is in force", hint="lift it, then call again", found=answer.detail)
            case "unwanted":
                raise GivenUp("the caller gave up before the intent was written", hint="nothing was sent")
            case _:
                raise Conflict(
                    "somebody else holds this already",
                    hint="look at the holder and attach to it or wait",
                    found=answer.detail,
                    holder_run=answer.row.run_id if answer.row else "",
                )

    def _quarantine(self, run_id: str, reason: str) -> None:
        known = self._kit.journal.row(RowKey("quarantine", run_id))
        if known is None or not known.active:
            self.record_system([e.RunQuarantined(quarantined_run=run_id, reason=reason)])

    def _system_rows(self, events: Iterable[e.Event]) -> list[Row]:
        known: dict[str, QuarantineRow | None] = {}
        rows: list[Row] = []
        for event in events:
            run_id = fold.quarantined_run(event.body)
            if run_id and run_id not in known:
                stored = self._kit.journal.row(RowKey("quarantine", run_id))
                known[run_id] = QuarantineRow.model_validate_json(stored.body) if stored else None
            row = fold.system_row(event, known.get(run_id))
            if isinstance(row, QuarantineRow):
                known[run_id] = row
            if row is not None:
                rows.append(row)
        return rows


def _refuse_late_comers(state: RunState, epoch: int | None, allowed: frozenset[RunStatus] | None) -> None:
    """What the journal would refuse in its own statement is not decided about on a state that is not ours."""
    run = state.run
    if epoch is not None and run.epoch != epoch:
        raise _taken_over(run.run_id, f"epoch is {run.epoch}, not {epoch}")
    if allowed is not None and run.status not in allowed:
        raise _frozen(run.run_id, f"run is `{run.status}`")


def _taken_over(run_id: str, found: str) -> Fenced:
    return Fenced(f"run `{run_id}` has been taken over", hint="stop: another driver owns it", found=found)


def _frozen(run_id: str, found: str) -> Frozen:
    return Frozen(
        f"run `{run_id}` accepts no such step: {found}",
        hint="open a new run, or resume this one after recovery to a checkpoint",
        run_id=run_id,
    )


def _intended(drafts: Sequence[Draft]) -> frozenset[str]:
    """The actions that are registered or sent by these facts: they need the claims they make."""
    return frozenset(d.action_id for d in drafts if isinstance(d.body, e.ActionPlanned | e.IntentRecorded))

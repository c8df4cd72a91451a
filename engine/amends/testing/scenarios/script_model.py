"""The entries of a scenario's script: what the agent, people, systems and recovery do, one after the other.

Each entry is a table with one verb. Texts may hold `${…}` placeholders (see `values`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from amends.core.contract import Phase
from amends.core.status import ActionStatus, Outcome, RunStatus
from amends.ports.services import Milestone

Values: TypeAlias = dict[str, Any]
Process: TypeAlias = Literal["here", "apart"]


class Part(BaseModel):
    """Base of everything in a scenario: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class RunIdentity(Part):
    """Which run an agent opens, and how: the arguments of `engine.run`."""

    workflow: str = Field(min_length=1)
    key: str = Field(min_length=1)
    agent: str = "agent"
    initiator: str = ""
    owner: str = ""
    intent_ref: str = ""
    check: str = "all_actions_succeeded"
    resume: bool = False
    resume_grace_seconds: float = Field(default=0.0, ge=0)
    name: str = ""  # what this scenario calls the run; empty: its key
    process: Process = "here"  # `apart`: in a process of its own, which `kill` can end
    raises: str = ""  # the error that opening must raise

    @property
    def called(self) -> str:
        """The run's name in this scenario."""
        return self.name or self.key


class Act(Part):
    """Base of all entries."""

    step: str = Field(default="", alias="as")  # its name: for results (`${reserve.reference}`) and for variants' edits


class Open(Act):
    """An agent opens a run, or re-attaches to it. Entries up to `finish`, `fail`, `raise`, `detach` or `kill` are its
    session.
    """

    open: RunIdentity


class Step(Act):
    """One call of the agent, and nothing about what it must get back."""

    call: str = Field(min_length=1)
    args: Values = Field(default_factory=dict[str, Any])
    label: str = ""
    depends_on: tuple[str, ...] | None = None  # names of steps; `[]`: independent; left out: nothing declared
    required: bool = True

    @property
    def called(self) -> str:
        """The step's name."""
        return self.step or self.call


class Call(Step):
    """One call of the agent. `raises`, `status` and `outcome` say what it must get back."""

    improvised: bool = False  # the model's own idea, not in the plan: for readers
    raises: str = ""
    status: ActionStatus | None = None
    outcome: Outcome | None = None
    repeated: bool | None = None
    conflict: bool | None = None
    kill_at: Milestone | None = None  # the process is killed when this call reaches that point


class Gate(Act):
    """A call that a person must approve in mid-run; waits up to `wait_seconds` for their answer."""

    gate: str = Field(min_length=1)
    args: Values = Field(default_factory=dict[str, Any])
    label: str = ""
    depends_on: tuple[str, ...] | None = None
    wait_seconds: float = Field(default=0.0, ge=0)
    raises: str = ""
    status: ActionStatus | None = None
    outcome: Outcome | None = None


class Command(Act):
    """The agent runs a program, such as the project's own tests."""

    command: tuple[str, ...] = Field(min_length=1)
    folder: str = "."
    exit: int | None = 0  # what it must exit with; left out with `kill_while`
    kill_while: bool = False  # the agent's process is killed while the program runs


class Drill(Part):
    """Somebody drills a capability on its sandbox: do, verify, undo, verify, for a dated certificate."""

    drill: str = Field(min_length=1)
    args: Values = Field(default_factory=dict[str, Any])


class Checkpoint(Act):
    """A point that recovery can go back to."""

    checkpoint: str = Field(min_length=1)


class Withdraw(Act):
    """The agent takes a queued item out of the outbox: the name of its step."""

    withdraw: str


class Ending(Part):
    """How a session ends well or is given up."""

    wait_seconds: float = Field(default=0.0, ge=0)
    status: RunStatus | None = None
    kill_when: str = ""  # the agent's process is killed as soon as this file of the project is there


class Finish(Act):
    """The agent ends its run well."""

    finish: Ending = Ending()
    step: str = Field(default="", alias="as")


class Fail(Act):
    """The agent ends its run badly, with a reason."""

    fail: str = Field(min_length=1)


class Raise(Act):
    """The agent's code raises an error with this text, out of its `with` block."""

    raise_: str = Field(alias="raise", min_length=1)


class Detach(Act):
    """The agent leaves its run open for another session."""

    detach: Literal[True]


class Kill(Act):
    """SIGKILL for the agent's process, from outside."""

    kill: Literal[True]


class Recovery(Part):
    """How recovery is started: with the project's folder and nothing else."""

    run: str = ""  # which run; empty: every run whose driver is gone
    to: str = ""
    by: str = ""
    wait_seconds: float = Field(default=20.0, ge=0)
    process: Process = "here"
    kill_at: Milestone | None = None  # `process = "apart"`: it is killed there
    status: RunStatus | None = None  # what the run must be afterwards
    raises: str = ""  # the error that starting it must raise: nothing is recovered then


class Recover(Act):
    """Somebody starts recovery."""

    recover: Recovery = Recovery()
    step: str = Field(default="", alias="as")


class Item(Part):
    """Which question or work item a person answers: the newest that fits, and their answer."""

    by: str = Field(min_length=1)
    capability: str = ""
    phase: Phase | None = None
    cause: str = ""
    choice: str = ""
    comment: str = ""
    evidence: str = ""
    reference: str = ""
    roll_back: bool = False
    raises: str = ""


class Approve(Act):
    """A person's yes."""

    approve: Item


class Reject(Act):
    """A person's no."""

    reject: Item


class Resolve(Act):
    """A person's named choice on an escalation."""

    resolve: Item


class SystemAct(Part):
    """Something happens at a system: one of its own actions (`action`), or a request of somebody else (`path`)."""

    system: str = ""  # in a system's own `seed`: that system
    action: str = ""
    parameters: Values = Field(default_factory=dict[str, Any])
    method: str = "POST"
    path: str = ""
    body: Any = None
    actor: str = "somebody-else"
    account: str = ""


class Happen(Act):
    """Something that no agent did."""

    happen: SystemAct


class FaultSpec(Part):
    """A fault of a loopback system; it must be seen to fire, or the scenario fails."""

    system: str
    kind: str
    fires: int | None = Field(default=None, ge=1)  # exactly so often; left out: at least once
    options: Values = Field(default_factory=dict[str, Any])  # method, path, where, times, skip, and the kind's own


class Arm(Act):
    """Arm a fault now."""

    arm: FaultSpec


class Disarm(Act):
    """Disarm every fault of a system."""

    disarm: str


class UsePolicy(Act):
    """The site's active bundle changes to this folder of the scenario."""

    use_policy: str


class Reloading(Part):
    """Which folder's files the site's bundle gets, and what the agent's engine makes of them."""

    bundle: str = Field(min_length=1)
    outcome: Literal["unchanged", "activated", "rejected"] | None = None  # only with an open session


class ReloadPolicy(Act):
    """The files of the site's bundle change in place, and the engine of an open session looks at them again."""

    reload_policy: Reloading


class Wait(Act):
    """Wait until the run has this status, or a question has expired: polled, bounded by `seconds`."""

    wait_until: Literal["expired"]
    seconds: float = Field(default=10.0, gt=0)


_VERBS = {
    "open": "open",
    "call": "call",
    "gate": "gate",
    "command": "command",
    "drill": "drill",
    "checkpoint": "checkpoint",
    "withdraw": "withdraw",
    "finish": "finish",
    "fail": "fail",
    "raise": "raise",
    "raise_": "raise",
    "detach": "detach",
    "kill": "kill",
    "recover": "recover",
    "approve": "approve",
    "reject": "reject",
    "resolve": "resolve",
    "happen": "happen",
    "arm": "arm",
    "disarm": "disarm",
    "use_policy": "use_policy",
    "reload_policy": "reload_policy",
    "wait_until": "wait_until",
}
VERBS = tuple(dict.fromkeys(_VERBS.values()))


def verb_of(entry: Any) -> str | None:
    """The verb of an entry, if it has exactly one."""
    names = cast("Iterable[str]", entry if isinstance(entry, dict) else getattr(entry, "model_fields_set", ()))
    found = {_VERBS[name] for name in names if name in _VERBS}
    return found.pop() if len(found) == 1 else None


Entry: TypeAlias = Annotated[
    Annotated[Open, Tag("open")]
    | Annotated[Call, Tag("call")]
    | Annotated[Gate, Tag("gate")]
    | Annotated[Command, Tag("command")]
    | Annotated[Drill, Tag("drill")]
    | Annotated[Checkpoint, Tag("checkpoint")]
    | Annotated[Withdraw, Tag("withdraw")]
    | Annotated[Finish, Tag("finish")]
    | Annotated[Fail, Tag("fail")]
    | Annotated[Raise, Tag("raise")]
    | Annotated[Detach, Tag("detach")]
    | Annotated[Kill, Tag("kill")]
    | Annotated[Recover, Tag("recover")]
    | Annotated[Approve, Tag("approve")]
    | Annotated[Reject, Tag("reject")]
    | Annotated[Resolve, Tag("resolve")]
    | Annotated[Happen, Tag("happen")]
    | Annotated[Arm, Tag("arm")]
    | Annotated[Disarm, Tag("disarm")]
    | Annotated[UsePolicy, Tag("use_policy")]
    | Annotated[ReloadPolicy, Tag("reload_policy")]
    | Annotated[Wait, Tag("wait_until")],
    Discriminator(verb_of, custom_error_type="verb", custom_error_message="one verb is needed"),
]
ENDS = (Finish, Fail, Raise, Detach, Kill)

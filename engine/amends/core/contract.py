"""The contract: what a capability declares before an agent may have it (DESIGN section 4).

A contract answers five questions: which effect; how is it checked; which inverse; which forward outcomes permit
the inverse; what authority. It is data (frozen, JSON-able), is stored with every intent as it was, and decides
recovery even after the adapter has changed or gone (rule 21).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from amends.core.canonical import Json, digest
from amends.core.reading import LONGEST_SECONDS
from amends.core.status import Outcome

Audience: TypeAlias = Literal["machine", "team", "customer", "partner"]
Reversibility: TypeAlias = Literal["reversible", "compensatable", "irreversible"]
ReleaseMode: TypeAlias = Literal["on_success", "on_approval", "gate"]
InputType: TypeAlias = Literal["String", "Long", "Bool", "Set<String>"]
Phase: TypeAlias = Literal["forward", "probe", "undo", "release", "correct"]


def namespace_of(prefix: str) -> str:
    """The Cedar namespace of a capability prefix: `Partner` for `partner`, `MyPartner` for `my_partner`."""
    return prefix.title().replace("_", "")


class Frozen(BaseModel):
    """Base of all contract values: immutable, no unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Effect(Frozen):
    """What the call changes. `resource` is a template over the arguments, such as `branch:{repo}/{name}`.

    `removes` marks a call that takes away what another call made: as a forward call on an effect of its own run it
    is a proposed inverse and is not sent (rule 11).
    """

    kind: str = Field(min_length=1)  # such as `branch`
    system: str = Field(min_length=1)  # the outside system, such as `github`
    # `type:{template}` over the arguments; the type is the resource's type in policies
    resource: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*:.+$")
    # `creates`, `sets`, `removes`, or `none` for a read, which is authorized but not recorded
    changes: Literal["creates", "sets", "removes", "none"] = "creates"

    @property
    def resource_type(self) -> str:
        """The resource's type in policies: `branch` in `branch:{repo}/{name}`."""
        return self.resource.split(":", 1)[0]


class Readers(Frozen):
    """Who can see the effect, and where they read it."""

    audience: Audience  # `machine`, `team`, `customer`, `partner`; the last two make a call irreversible
    where: str = Field(min_length=1)  # where they read it


class Identity(Frozen):
    """What makes two calls the same intent (rules 5 and 6). `fields` are argument names."""

    fields: tuple[str, ...] = ()  # arguments that say which intent it is; leave out what a model may reword
    # `run`; `workflow` or `tenant`: a claim that reaches past the run
    scope: Literal["run", "workflow", "tenant"] = "run"
    cardinality: Literal["one", "many"] = "one"  # `one` live action per identity; `many`: a new value is a new action
    value_fields: tuple[str, ...] = ()  # with `many`: the arguments that name the value; a new value is a new action


class Keying(Frozen):
    """How a second send is kept from being a second effect."""

    # `keyed`: the provider absorbs repeats; `probeable`: look before acting; `blind`: neither, so doubts go to a person
    kind: Literal["keyed", "probeable", "blind"]
    parameter: str = ""  # the header or field that carries the key
    ttl_seconds: float = 86_400.0  # how long the provider remembers a key


class ProbeRule(Frozen):
    """How the real system is asked, how often, and when `absent` is final (rule 4)."""

    # `id`: by reference or name; `list`: a complete list; `search`: an index, whose `absent` is never final
    strength: Literal["id", "list", "search"]
    schedule_seconds: tuple[float, ...] = (0.0, 1.0, 4.0, 15.0, 60.0)  # when to look again while it is not known
    deadline_seconds: float = 300.0  # after that a person is asked
    complete: bool = True  # reads every page
    absent_final_after_seconds: float | None = None  # None: absence never proves failure
    counts: bool = False  # the probe finds every effect bearing our marker (rule 7)

    @property
    def absence_can_be_final(self) -> bool:
        """True if an authoritative, complete read may prove that nothing landed."""
        return self.strength != "search" and self.complete and self.absent_final_after_seconds is not None


class Reference(Frozen):
    """The provider's reference: untrusted until it matches `pattern` (a full match)."""

    field: str  # its name in the effect
    pattern: str = r"[A-Za-z0-9_.:/\-]{1,200}"  # a regular expression


class Retry(Frozen):
    """Bounded retries of an undo that provably did not take effect."""

    attempts: int = Field(default=5, ge=1, le=50)  # sends of an undo, at most
    backoff_seconds: float = Field(default=2.0, ge=0)  # before the second
    backoff_factor: float = Field(default=2.0, ge=1)  # for each further one
    settle_seconds: float = Field(default=0.0, ge=0)  # how long after an OK the effect may still be seen


class Alternative(Frozen):
    """One rung of the compensation ladder; the first whose `when` matches the probed state is tried."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")  # such as `void`
    when: dict[str, tuple[Json, ...]] = Field(
        default_factory=dict[str, tuple[Json, ...]]
    )  # probed state field -> accepted values
    # `own`: this capability's `undo`; `escalate`: a person; `correct`: only tell people; or another capability
    undo: str = "own"  # "own" | "escalate" | "correct" | another capability
    # where `required_fields` are looked up: `forward_output`, `forward_input`, `reconciliation`
    input_from: Literal["forward_output", "forward_input", "reconciliation"] = "forward_output"
    required_fields: tuple[str, ...] = ()  # without one of them the evidence is incomplete, and policy denies the undo
    safe_when: tuple[Outcome, ...] = (Outcome.SUCCEEDED,)  # outcomes of the call after which it may be sent
    harmless_when_absent: bool = False  # sending it does nothing if the effect is not there
    expires_after_seconds: float | None = None  # from success on; later the rung is not used
    concurrent: bool = False  # may run beside independent undos (rule 20); today's driver runs one at a time
    retry: Retry = Retry()  # bounds of its repeats
    authority: str = ""  # renames the undo's policy action; never a forward name


class Signal(Frozen):
    """What people see because of the effect, and the correction written now, before it is needed (rule 32)."""

    visible_to: str = Field(min_length=1)  # who
    place: str = Field(min_length=1)  # URI template: `slack:{channel}/{ts}`, `jira:{key}`, `person:maya`
    seen: str = Field(min_length=1)  # what they saw
    reader_must: str = Field(min_length=1)  # what they have to do now, even `nothing`
    comes_back: str = Field(min_length=1)  # when or whether it returns
    owner: str = ""  # a named person; empty: the run's owner


class Release(Frozen):
    """When an irreversible call may leave the outbox, or that it is a gate in mid-run (rule 29)."""

    # `on_success`, `on_approval`: from the outbox after the run; `gate`: in mid-run, with a person's yes
    mode: ReleaseMode
    approval_ttl_seconds: float = 86_400.0  # how long an approval may be given and used


class Limits(Frozen):
    """Bounds of one call."""

    timeout_seconds: float = Field(default=30.0, gt=0, le=LONGEST_SECONDS)  # of one call; afterwards it is unknown
    max_attempts: int = Field(default=3, ge=1, le=20)  # sends of one generation
    per_run: int | None = Field(default=None, ge=1)  # calls of this capability in a run


class EscalationRule(Frozen):
    """The bounded work item a person gets when automation stops."""

    queue: str = "recovery"  # whose queue
    owner: str = ""  # a named person; empty: the run's owner
    deadline_seconds: float = 86_400.0  # until when it should be decided
    evidence_fields: tuple[str, ...] = ()  # effect or argument fields shown as evidence


class Contract(Frozen):
    """Everything a capability declares. Registration checks: `amends.core.registration`."""

    capability: str = Field(pattern=r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$")  # `git.create_branch`
    summary: str = Field(min_length=1)  # one sentence: what the call does
    effect: Effect  # what it changes
    readers: Readers  # who can see it
    undo_cost: str = ""  # what taking it back costs, in words
    reversibility: Reversibility  # `reversible`, `compensatable`, `irreversible`
    identity: Identity = Identity()  # what makes two calls the same intent
    keying: Keying = Keying(kind="blind")  # what keeps a second send from being a second effect
    confirm: Literal["response", "probe"] = "response"  # is the answer itself proof, or a separate read
    probe: ProbeRule | None = None  # how the system is asked; without one an unknown goes to a person
    reference: Reference | None = None  # the provider's own id of the effect
    # the undo puts back what `prepare` read; needed where the effect `sets` a state
    restores_before_image: bool = False
    compensation: tuple[Alternative, ...] = ()  # the rungs of the undo, in order
    partial_inverse: bool = False  # the undo can take back an effect of which only some parts exist (rule 7)
    signal: Signal | None = None  # what people see, and the correction, written now
    release: Release | None = None  # when an irreversible call may leave
    limits: Limits = Limits()  # bounds of one call
    provisional_for_seconds: float | None = None  # how long the provider may still revoke a success
    needs_drill: bool = False  # without a valid drill certificate the call is irreversible
    escalation: EscalationRule = EscalationRule()  # the work item a person gets when automation stops
    input: dict[str, InputType] = Field(default_factory=dict[str, InputType])  # declared, non-secret policy input
    secret_arguments: tuple[str, ...] = ()  # arguments that must be secret references, never values
    corrects: bool = False  # posts corrections: called by recovery and people only, never by an agent (rules 21 and 32)
    parts: tuple[str, ...] = ()  # names of what one call changes, if a probe may find only some of it

    @property
    def digest(self) -> str:
        """Identity of this contract's content: what an approval and a drill certificate bind to."""
        return digest(self.model_dump(mode="json"))

    @property
    def namespace(self) -> str:
        """The adapter's Cedar namespace: `Git` for `git.create_branch`."""
        return namespace_of(self.capability.split(".", 1)[0])

    @property
    def consequential(self) -> bool:
        """False only for reads, which are authorized but not recorded by default."""
        return self.effect.changes != "none"

    @property
    def irreversible(self) -> bool:
        """True if the call may only leave through the outbox or a gate."""
        return self.reversibility == "irreversible"

    def undo_alternative(self, name: str) -> Alternative:
        """The rung called `name`. Raises `KeyError` if the contract has none."""
        for alternative in self.compensation:
            if alternative.name == name:
                return alternative
        raise KeyError(name)

    def action_names(self) -> dict[str, Phase]:
        """Every policy action this contract brings, with its phase."""
        if self.corrects:
            return {f"{self.capability}.correct": "correct", f"{self.capability}.probe": "probe"}
        names: dict[str, Phase] = {self.capability: "forward"}
        names[f"{self.capability}.probe"] = "probe"
        if self.compensation:
            names[f"{self.capability}.undo"] = "undo"
        for alternative in self.compensation:
            if alternative.authority:
                names[alternative.authority] = "undo"
        if self.irreversible:
            names[f"{self.capability}.release"] = "release"
        return names

    def undo_action_name(self, alternative: Alternative) -> str:
        """The policy action that authorizes this rung."""
        return alternative.authority or f"{self.capability}.undo"

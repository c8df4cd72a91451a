"""The contracts of the git capabilities: what changes, how it is found again, how it is taken back."""

from __future__ import annotations

from amends.spi import (
    Alternative,
    Contract,
    Effect,
    EscalationRule,
    Identity,
    Keying,
    Limits,
    Outcome,
    ProbeRule,
    Readers,
    Reference,
    Signal,
)
from amends_git.options import GitOptions

PARTS = ("files", "head")  # of a checkout

_LIST_FINAL_SECONDS = 60.0
_MACHINE = Readers(audience="machine", where="the repository")
_COMMIT = Reference(field="commit", pattern=r"[0-9a-f]{40}([0-9a-f]{24})?")
_ESCALATION = EscalationRule(evidence_fields=("ref", "commit"))
_INPUT = {"repo": "String", "branch": "String", "shared": "Bool"}

_RESTORE = Alternative(name="restore", when={"relation": ("ours",), "shared": (False,)}, harmless_when_absent=True)
_REVERT = Alternative(name="revert", when={"shared": (True,)})
_PERSON = Alternative(name="person", undo="escalate")
_LOCAL = (
    Alternative(name="restore", when={"relation": ("ours",), "pushed": ("no",)}, harmless_when_absent=True),
    Alternative(name="revert", when={"pushed": ("yes",)}),
    _PERSON,
)


def create_branch(options: GitOptions) -> Contract:
    """One new branch per run and repository: a reworded name is the same intent."""
    return _contract(
        options,
        capability="git.create_branch",
        summary="creates a branch on the remote at an explicit commit",
        effect=Effect(kind="branch", system="git", resource="branch:{repo}/{branch}"),
        identity=Identity(fields=("repo",)),
        undo_cost="the branch is deleted; nobody's commits go with it, or it is not deleted",
        compensation=(Alternative(name="delete", when={"relation": ("ours",)}, harmless_when_absent=True), _PERSON),
    )


def commit(options: GitOptions) -> Contract:
    """One commit per run and repository, or one per label."""
    return _contract(
        options,
        capability="git.commit",
        summary="commits given contents to a local branch of the checkout, beside index and worktree",
        effect=Effect(kind="commit", system="git", resource="branch:{repo}/{branch}", changes="sets"),
        identity=Identity(fields=("repo",)),
        restores_before_image=True,
        undo_cost="the local branch goes back and a backup ref keeps the commit; if it was pushed, a revert commit",
        compensation=_LOCAL,
    )


def push(options: GitOptions) -> Contract:
    """A later commit is a later value; the same commit under another branch name is the same intent."""
    return _contract(
        options,
        capability="git.push",
        summary="moves a branch of the remote forward to a commit",
        effect=Effect(kind="ref", system="git", resource="branch:{repo}/{branch}", changes="sets"),
        identity=Identity(fields=("repo",), cardinality="many", value_fields=("commit",)),
        restores_before_image=True,
        undo_cost="the branch goes back; where others build on it, a revert commit stays in its history",
        compensation=(_RESTORE, _REVERT, _PERSON),
    )


def force_push(options: GitOptions) -> Contract:
    """What is replaced stays on the remote under `refs/amends/backup/<action>`, moved in the same atomic push."""
    return _contract(
        options,
        capability="git.force_push",
        summary="replaces a named commit of a remote branch by one that does not build on it, and keeps a backup",
        effect=Effect(kind="ref", system="git", resource="branch:{repo}/{branch}", changes="sets"),
        identity=Identity(fields=("repo",), cardinality="many", value_fields=("commit",)),
        restores_before_image=True,
        undo_cost="the branch goes back to the backup; whoever fetched in between has both histories",
        compensation=(Alternative(name="restore", when={"relation": ("ours",)}, harmless_when_absent=True), _PERSON),
    )


def merge(options: GitOptions) -> Contract:
    """One merge per run and repository, or one per label."""
    return _contract(
        options,
        capability="git.merge",
        summary="merges a branch or commit into a local branch of the checkout, beside index and worktree",
        effect=Effect(kind="commit", system="git", resource="branch:{repo}/{branch}", changes="sets"),
        identity=Identity(fields=("repo",)),
        restores_before_image=True,
        undo_cost="the local branch goes back; if the merge was pushed, a revert against its first parent, after which "
        "the same commits can only come in again by reverting the revert",
        compensation=_LOCAL,
    )


def checkout(options: GitOptions) -> Contract:
    """A later target is a later value. What the worktree held is kept as a commit before anything is changed."""
    return _contract(
        options,
        capability="git.checkout",
        summary="makes the checkout's worktree show another branch or commit, keeping uncommitted work aside",
        effect=Effect(kind="worktree", system="git", resource="worktree:{repo}", changes="sets"),
        readers=Readers(audience="machine", where="the checkout's folder"),
        identity=Identity(fields=("repo",), cardinality="many", value_fields=("target",)),
        restores_before_image=True,
        undo_cost="none while nobody has worked in the worktree since; the former content stays under a backup ref",
        compensation=(
            Alternative(
                name="restore",
                when={"worktree": ("ours",)},
                safe_when=(Outcome.SUCCEEDED, Outcome.UNKNOWN),
                harmless_when_absent=True,
            ),
            _PERSON,
        ),
        parts=PARTS,
        partial_inverse=True,
        input={"repo": "String", "dirty": "Bool"},
        escalation=EscalationRule(evidence_fields=("commit", "kept")),
    )


def delete_branch(options: GitOptions) -> Contract:
    """The branch's former commit is the before-image."""
    return _contract(
        options,
        capability="git.delete_branch",
        summary="deletes a branch of the remote",
        effect=Effect(kind="branch_removal", system="git", resource="branch:{repo}/{branch}", changes="sets"),
        identity=Identity(fields=("repo", "branch")),
        restores_before_image=True,
        undo_cost="the branch comes back at its former commit while the object can still be had",
        compensation=(Alternative(name="restore", when={"relation": ("ours",)}, harmless_when_absent=True), _PERSON),
    )


def tag(options: GitOptions) -> Contract:
    """One tag per run and repository, or one per label."""
    return _contract(
        options,
        capability="git.tag",
        summary="creates an annotated tag on the remote",
        effect=Effect(kind="tag", system="git", resource="tag:{repo}/{name}"),
        identity=Identity(fields=("repo",)),
        input={"repo": "String", "name": "String", "shared": "Bool"},
        undo_cost="the tag is deleted; whoever fetched it keeps it",
        compensation=(Alternative(name="delete", when={"relation": ("ours",)}, harmless_when_absent=True), _PERSON),
    )


def revert(options: GitOptions) -> Contract:
    """One revert per commit."""
    return _contract(
        options,
        capability="git.revert",
        summary="pushes a commit that takes back an earlier one",
        effect=Effect(kind="ref", system="git", resource="branch:{repo}/{branch}", changes="sets"),
        identity=Identity(fields=("repo", "commit")),
        restores_before_image=True,
        undo_cost="as for a push",
        compensation=(_RESTORE, _REVERT, _PERSON),
    )


def draft_pr(options: GitOptions) -> Contract:
    """One draft pull request per run and repository. People are told of it, so it has a signal and a correction."""
    return _contract(
        options,
        capability="git.draft_pr",
        summary="opens a draft pull request",
        effect=Effect(kind="pull_request", system="git", resource="branch:{repo}/{branch}"),
        readers=Readers(audience="team", where="the pull request and the notifications it raised"),
        reversibility="compensatable",
        identity=Identity(fields=("repo",)),
        probe=_listed(options),
        reference=Reference(field="number", pattern=r"[1-9][0-9]{0,11}"),
        undo_cost="the pull request is closed; whoever was notified has read it",
        compensation=(Alternative(name="close", when={"pull_request": ("open",)}, harmless_when_absent=True), _PERSON),
        signal=_signal(
            seen="a draft pull request that an agent run opened",
            reader_must="not review or merge it",
            comes_back="when the work is taken up again, as a new pull request",
        ),
        escalation=EscalationRule(evidence_fields=("number", "url")),
    )


def close_pr(options: GitOptions) -> Contract:
    """One close per pull request and run. The answer may be a gateway's: a separate read confirms it."""
    return _pull_request(
        options,
        capability="git.close_pr",
        summary="closes a pull request without merging it",
        effect=Effect(kind="pull_request_state", system="git", resource="pr:{repo}/{number}", changes="sets"),
        restores_before_image=True,
        undo_cost="the pull request is opened again; whoever was notified has read it",
        compensation=(
            Alternative(name="reopen", when={"state": ("closed",)}, harmless_when_absent=True),
            _PERSON,
        ),
        reference=Reference(field="number", pattern=r"[1-9][0-9]{0,11}"),
        signal=_signal(
            seen="a pull request that an agent run closed",
            reader_must="not treat the work as dropped",
            comes_back="at once: it is opened again",
        ),
    )


def merge_pr(options: GitOptions) -> Contract:
    """One merge per pull request and run. Whatever the answer says, state and merge commit are read back."""
    return _pull_request(
        options,
        capability="git.merge_pr",
        summary="merges a pull request at a given head commit",
        effect=Effect(kind="merge", system="git", resource="pr:{repo}/{number}"),
        undo_cost="a revert commit stays in the base branch's history, and the pull request stays merged; pipelines "
        "that the merge started have run",
        compensation=(Alternative(name="revert", when={"relation": ("ours", "built_on")}), _PERSON),
        reference=_COMMIT,
        signal=_signal(
            seen="a pull request that an agent run merged",
            reader_must="not build on the merge",
            comes_back="as a new pull request: the merged commits count as merged, so the revert is to be reverted",
        ),
    )


def correction(options: GitOptions) -> Contract:
    """`git.correction`: serves `pr:{repo}/{number}` and comments in that very pull request."""
    return Contract(
        capability="git.correction",
        summary="comments a correction in a pull request",
        effect=Effect(kind="correction", system="git", resource="place:{place}"),
        readers=Readers(audience="team", where="the pull request"),
        undo_cost="none: a later change is another comment",
        reversibility="irreversible",
        identity=Identity(fields=("place",)),
        keying=Keying(kind="probeable"),
        probe=_listed(options),
        reference=Reference(field="comment", pattern=r"[1-9][0-9]{0,15}"),
        signal=Signal(
            visible_to="whoever reads the place",
            place="{place}",
            seen="a correction about an agent run",
            reader_must="follow the latest correction of that run",
            comes_back="a later change is posted as another comment",
        ),
        corrects=True,
        limits=Limits(timeout_seconds=options.timeout_seconds),
        escalation=EscalationRule(evidence_fields=("place",)),
    )


def _signal(*, seen: str, reader_must: str, comes_back: str) -> Signal:
    return Signal(
        visible_to="everybody who watches the repository",
        place="pr:{repo}/{number}",
        seen=seen,
        reader_must=reader_must,
        comes_back=comes_back,
    )


def _pull_request(options: GitOptions, **fields: object) -> Contract:
    """What the capabilities on an existing pull request share."""
    shared: dict[str, object] = {
        "readers": Readers(audience="team", where="the pull request and the notifications it raised"),
        "reversibility": "compensatable",
        "identity": Identity(fields=("repo", "number")),
        "confirm": "probe",
        "probe": _listed(options).model_copy(update={"strength": "id", "counts": False}),
        "escalation": EscalationRule(evidence_fields=("number", "commit")),
        "input": {"repo": "String", "shared": "Bool"},
    }
    return _contract(options, **shared | fields)


def _listed(options: GitOptions) -> ProbeRule:
    final = options.absent_final_after_seconds
    return ProbeRule(
        strength="list",
        deadline_seconds=options.probe_deadline_seconds,
        absent_final_after_seconds=_LIST_FINAL_SECONDS if final is None else final,
        counts=True,
    )


def _contract(options: GitOptions, **fields: object) -> Contract:
    base: dict[str, object] = {
        "readers": _MACHINE,
        "reversibility": "reversible",
        "keying": Keying(kind="probeable"),
        "probe": ProbeRule(
            strength="id",
            schedule_seconds=(0.0, 1.0, 4.0, 15.0, 60.0),
            deadline_seconds=options.probe_deadline_seconds,
            absent_final_after_seconds=options.final_after_seconds,
        ),
        "reference": _COMMIT,
        "limits": Limits(timeout_seconds=options.timeout_seconds),
        "escalation": _ESCALATION,
        "input": _INPUT,
    }
    return Contract.model_validate(base | fields)

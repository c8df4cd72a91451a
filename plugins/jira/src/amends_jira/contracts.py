"""The contracts of the Jira capabilities: what people see, what can be taken back, and how it is found again."""

from __future__ import annotations

from amends.spi import (
    Alternative,
    Contract,
    Effect,
    EscalationRule,
    Identity,
    Keying,
    Limits,
    ProbeRule,
    Readers,
    Reference,
    Release,
    Retry,
    Signal,
)
from amends_jira.options import JiraOptions

KEY = r"[A-Z][A-Z0-9_]*-[1-9][0-9]*"
_PERSON = Alternative(name="person", undo="escalate")


def transition(options: JiraOptions) -> Contract:
    """`jira.transition`: irreversible unless the site declares that nobody outside hears of it."""
    reversible = options.transition == "compensatable"
    return Contract(
        capability="jira.transition",
        summary="moves an issue to another status",
        effect=Effect(kind="issue_status", system="jira", resource="issue:{key}", changes="sets"),
        readers=_readers(options, "the issue, its watchers' mail, and whatever its webhooks tell"),
        undo_cost="the reverse transition, where the workflow has one; webhooks and mail have gone out",
        reversibility="compensatable" if reversible else "irreversible",
        identity=Identity(fields=("key",), cardinality="many", value_fields=("to",)),
        keying=Keying(kind="probeable"),
        confirm="probe",
        probe=_by_id(options),
        reference=Reference(field="key", pattern=KEY),
        restores_before_image=True,
        compensation=(
            Alternative(name="reverse", when={"moved": ("ours",)}, retry=Retry(attempts=3, settle_seconds=1.0)),
            _PERSON,
        ),
        signal=Signal(
            visible_to="everybody who reads or watches the issue",
            place="jira:{key}",
            seen="issue {key} in status {to}",
            reader_must="go by the status the issue shows now; if you acted on {to}, tell the owner",
            comes_back="when the work is done again and checked, the issue moves again",
        ),
        release=None if reversible else _release(options),
        limits=Limits(timeout_seconds=options.timeout_seconds),
        escalation=EscalationRule(evidence_fields=("key", "to", "status")),
        input={"key": "String", "project": "String", "to": "String", "customer_facing": "Bool"},
    )


def comment(options: JiraOptions) -> Contract:
    """`jira.comment`: can be deleted, unless customers read it."""
    outside = options.customer_facing
    return Contract(
        capability="jira.comment",
        summary="writes a comment on an issue",
        effect=Effect(kind="comment", system="jira", resource="issue:{key}"),
        readers=_readers(options, "the issue's comments, and its watchers' mail"),
        undo_cost="the comment can be deleted; mail about it has gone out",
        reversibility="irreversible" if outside else "compensatable",
        identity=Identity(fields=("key",)),
        keying=Keying(kind="probeable"),
        probe=_listing(options),
        reference=Reference(field="comment", pattern=rf"{KEY}/[0-9]{{1,20}}"),
        compensation=(
            Alternative(
                name="delete",
                when={"comment": ("posted",)},
                harmless_when_absent=True,
                retry=Retry(attempts=3, settle_seconds=1.0),
            ),
            _PERSON,
        ),
        signal=Signal(
            visible_to="everybody who reads or watches the issue",
            place="jira:{key}",
            seen="a comment on {key} that an agent run wrote",
            reader_must="do not act on that comment; if you already did, tell the owner",
            comes_back="if the work is done again, a new comment says so",
        ),
        release=_release(options) if outside else None,
        limits=Limits(timeout_seconds=options.timeout_seconds),
        escalation=EscalationRule(evidence_fields=("key", "comment_id")),
        input={"key": "String", "project": "String", "customer_facing": "Bool"},
    )


def create(options: JiraOptions) -> Contract:
    """`jira.create`: only search can find an issue whose answer was lost, and search lags: absence proves nothing."""
    told = bool(options.create_told)
    delete = Alternative(
        name="delete",
        when={"issue": ("untouched",)},
        harmless_when_absent=True,
        retry=Retry(attempts=3, settle_seconds=1.0),
    )
    return Contract(
        capability="jira.create",
        summary="creates an issue",
        effect=Effect(kind="issue", system="jira", resource="project:{project}"),
        readers=Readers(audience="team", where="the project's lists and boards, and its watchers' mail"),
        undo_cost="the issue can be deleted while nobody has worked on it; mail about it has gone out",
        reversibility="compensatable" if told else "irreversible",
        identity=Identity(fields=("project", "issuetype")),
        keying=Keying(kind="probeable"),
        probe=ProbeRule(
            strength="search",
            schedule_seconds=(0.0, 2.0, 10.0, 30.0, 180.0, 600.0),
            deadline_seconds=options.search_deadline_seconds,
            absent_final_after_seconds=None,
            counts=True,
        ),
        reference=Reference(field="key", pattern=KEY),
        compensation=(delete, _PERSON) if told else (_PERSON,),
        signal=Signal(
            visible_to="everybody who reads the project",
            place=f"person:{options.create_told}" if told else "jira:{key}",
            seen="a new issue in {project} that an agent run created",
            reader_must="do not start work on it; if you already did, tell the owner",
            comes_back="if the work is done again, a new issue is created",
            owner=options.create_told,
        ),
        release=None if told else Release(mode="on_success"),
        limits=Limits(timeout_seconds=options.timeout_seconds),
        escalation=EscalationRule(evidence_fields=("project", "key")),
        input={"project": "String", "issuetype": "String"},
    )


def assign(options: JiraOptions) -> Contract:
    """`jira.assign`: sets a state; the former assignee is the before-image and can be put back."""
    return Contract(
        capability="jira.assign",
        summary="assigns an issue to somebody",
        effect=Effect(kind="issue_assignee", system="jira", resource="issue:{key}", changes="sets"),
        readers=Readers(audience="team", where="the issue, and the mail to both assignees"),
        undo_cost="the former assignee comes back; mail about it has gone out",
        reversibility="compensatable",
        identity=Identity(fields=("key",), cardinality="many", value_fields=("account_id",)),
        keying=Keying(kind="probeable"),
        confirm="probe",
        probe=_by_id(options),
        reference=Reference(field="key", pattern=KEY),
        restores_before_image=True,
        compensation=(
            Alternative(name="restore", when={"assignee": ("ours",)}, retry=Retry(settle_seconds=1.0)),
            _PERSON,
        ),
        signal=Signal(
            visible_to="everybody who reads or watches the issue",
            place="jira:{key}",
            seen="issue {key} assigned to somebody else",
            reader_must="go by the assignee the issue shows now",
            comes_back="when the work is done again, the issue is assigned again",
        ),
        limits=Limits(timeout_seconds=options.timeout_seconds),
        escalation=EscalationRule(evidence_fields=("key", "account_id")),
        input={"key": "String", "project": "String"},
    )


def correction(options: JiraOptions) -> Contract:
    """`jira.correction`: serves `jira:{key}` with a comment on that issue."""
    return Contract(
        capability="jira.correction",
        summary="posts a correction as a comment",
        effect=Effect(kind="correction", system="jira", resource="place:{place}"),
        readers=Readers(audience="team", where="the issue's comments, and its watchers' mail"),
        undo_cost="none: a later change is another comment",
        reversibility="irreversible",
        identity=Identity(fields=("place",)),
        keying=Keying(kind="probeable"),
        probe=_listing(options),
        reference=Reference(field="comment", pattern=rf"{KEY}/[0-9]{{1,20}}"),
        signal=Signal(
            visible_to="everybody who reads or watches the issue",
            place="{place}",
            seen="a correction about an agent run",
            reader_must="follow the latest correction of that run",
            comes_back="a later change is posted as another comment",
        ),
        corrects=True,
        limits=Limits(timeout_seconds=options.timeout_seconds),
        escalation=EscalationRule(evidence_fields=("place",)),
    )


def _readers(options: JiraOptions, where: str) -> Readers:
    if options.customer_facing:
        return Readers(audience="customer", where=f"{where}; the client portal")
    return Readers(audience="team", where=where)


def _release(options: JiraOptions) -> Release:
    return Release(mode="on_approval" if options.customer_facing else "on_success")


def _by_id(options: JiraOptions) -> ProbeRule:
    """The issue itself, by key."""
    return ProbeRule(
        strength="id",
        deadline_seconds=options.probe_deadline_seconds,
        absent_final_after_seconds=options.absent_final_after_seconds,
    )


def _listing(options: JiraOptions) -> ProbeRule:
    """Every comment of the issue, filtered by our marker on our side."""
    return ProbeRule(
        strength="list",
        deadline_seconds=options.probe_deadline_seconds,
        absent_final_after_seconds=options.absent_final_after_seconds,
        counts=True,
    )

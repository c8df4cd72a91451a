"""Contracts of what makes something new: found again by our mark, taken back by deleting it."""

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
from amends_jira.contracts.shared import KEY, PERSON, by_id, listing, readers, release
from amends_jira.options import JiraOptions


def comment(options: JiraOptions) -> Contract:
    """`jira.comment`: can be deleted while nobody has edited it, unless customers read it."""
    outside = options.customer_facing
    return Contract(
        capability="jira.comment",
        summary="writes a comment on an issue",
        effect=Effect(kind="comment", system="jira", resource="issue:{key}"),
        readers=readers(options, "the issue's comments, and its watchers' mail"),
        undo_cost="the comment can be deleted; mail about it has gone out",
        reversibility="irreversible" if outside else "compensatable",
        identity=Identity(fields=("key",)),
        keying=Keying(kind="probeable"),
        confirm="probe",
        probe=listing(options),
        reference=Reference(field="comment", pattern=rf"{KEY}/[0-9]{{1,20}}"),
        compensation=(
            Alternative(
                name="delete",
                when={"comment": ("posted",)},
                harmless_when_absent=True,
                retry=Retry(attempts=3, settle_seconds=1.0),
            ),
            PERSON,
        ),
        signal=Signal(
            visible_to="everybody who reads or watches the issue",
            place="jira:{key}",
            seen="a comment on {key} that an agent run wrote",
            reader_must="do not act on that comment; if you already did, tell the owner",
            comes_back="if the work is done again, a new comment says so",
        ),
        release=release(options) if outside else None,
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
        confirm="probe",
        probe=ProbeRule(
            strength="search",
            schedule_seconds=(0.0, 2.0, 10.0, 30.0, 180.0, 600.0),
            deadline_seconds=options.search_deadline_seconds,
            absent_final_after_seconds=None,
            counts=True,
        ),
        reference=Reference(field="key", pattern=KEY),
        compensation=(delete, PERSON) if told else (PERSON,),
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


def link(options: JiraOptions) -> Contract:
    """`jira.link`: told by what it links, since it carries no marker; it did not stand before."""
    return Contract(
        capability="jira.link",
        summary="links two issues",
        effect=Effect(kind="issue_link", system="jira", resource="issue:{key}"),
        readers=Readers(audience="team", where="both issues, and their watchers' mail"),
        undo_cost="the link is deleted; mail about it has gone out",
        reversibility="compensatable",
        identity=Identity(fields=("key", "type", "target")),
        keying=Keying(kind="probeable"),
        confirm="probe",
        probe=listing(options),
        reference=Reference(field="link", pattern=rf"{KEY}(/[0-9]{{1,20}})?"),
        compensation=(
            Alternative(
                name="delete",
                when={"link": ("present",)},
                harmless_when_absent=True,
                retry=Retry(attempts=3, settle_seconds=1.0),
            ),
            PERSON,
        ),
        signal=Signal(
            visible_to="everybody who reads or watches the two issues",
            place="jira:{key}",
            seen="a link from issue {key} to {target}",
            reader_must="do not plan by that link; if you already did, tell the owner",
            comes_back="if the work is done again, the issues are linked again",
        ),
        limits=Limits(timeout_seconds=options.timeout_seconds),
        escalation=EscalationRule(evidence_fields=("key", "type", "target")),
        input={"key": "String", "project": "String", "type": "String", "target": "String"},
    )


def remote_link(options: JiraOptions) -> Contract:
    """`jira.remote_link`: its global id is our marker, and an issue has one link of a global id at most."""
    rule = by_id(options).model_copy(update={"strength": "list"})
    return Contract(
        capability="jira.remote_link",
        summary="links an issue to a page elsewhere",
        effect=Effect(kind="remote_link", system="jira", resource="issue:{key}"),
        readers=Readers(audience="team", where="the issue's links"),
        undo_cost="the link is deleted",
        reversibility="compensatable",
        identity=Identity(fields=("key", "url")),
        keying=Keying(kind="probeable"),
        confirm="probe",
        probe=rule,
        reference=Reference(field="global_id", pattern=rf"{KEY}/amends:[A-Za-z0-9_.:\-]{{1,100}}"),
        compensation=(
            Alternative(
                name="delete",
                when={"remote_link": ("ours",)},
                harmless_when_absent=True,
                retry=Retry(attempts=3, settle_seconds=1.0),
            ),
            PERSON,
        ),
        signal=Signal(
            visible_to="everybody who reads the issue",
            place="jira:{key}",
            seen="a link from issue {key} to {url}",
            reader_must="nothing",
            comes_back="if the work is done again, the link is there again",
        ),
        limits=Limits(timeout_seconds=options.timeout_seconds),
        escalation=EscalationRule(evidence_fields=("key", "url")),
        input={"key": "String", "project": "String", "url": "String"},
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
        confirm="probe",
        probe=listing(options),
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

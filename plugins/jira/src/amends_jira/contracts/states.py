"""Contracts of what sets a state of an issue: found again by key, restored from the before-image."""

from __future__ import annotations

from amends.spi import (
    Alternative,
    Contract,
    Effect,
    EscalationRule,
    Identity,
    Keying,
    Limits,
    Readers,
    Reference,
    Retry,
    Signal,
)
from amends_jira.contracts.shared import KEY, PERSON, by_id, readers, release
from amends_jira.options import JiraOptions


def transition(options: JiraOptions) -> Contract:
    """`jira.transition`: irreversible unless the site declares that nobody outside hears of it."""
    reversible = options.transition == "compensatable"
    return Contract(
        capability="jira.transition",
        summary="moves an issue to another status",
        effect=Effect(kind="issue_status", system="jira", resource="issue:{key}", changes="sets"),
        readers=readers(options, "the issue, its watchers' mail, and whatever its webhooks tell"),
        undo_cost="the way back through the workflow, where it has one; webhooks, mail, and what a screen added stay",
        reversibility="compensatable" if reversible else "irreversible",
        identity=Identity(fields=("key",), cardinality="many", value_fields=("to",)),
        keying=Keying(kind="probeable"),
        confirm="probe",
        probe=by_id(options),
        reference=Reference(field="key", pattern=KEY),
        restores_before_image=True,
        compensation=(
            Alternative(
                name="reverse",
                when={"moved": ("ours",)},
                retry=Retry(attempts=options.way_back_steps + 2, settle_seconds=1.0),
            ),
            PERSON,
        ),
        signal=Signal(
            visible_to="everybody who reads or watches the issue",
            place="jira:{key}",
            seen="issue {key} in status {to}",
            reader_must="go by the status the issue shows now; if you acted on {to}, tell the owner",
            comes_back="when the work is done again and checked, the issue moves again",
        ),
        release=None if reversible else release(options),
        limits=Limits(timeout_seconds=options.timeout_seconds),
        escalation=EscalationRule(evidence_fields=("key", "to", "status")),
        input={"key": "String", "project": "String", "to": "String", "customer_facing": "Bool"},
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
        probe=by_id(options),
        reference=Reference(field="key", pattern=KEY),
        restores_before_image=True,
        compensation=(
            Alternative(name="restore", when={"assignee": ("ours",)}, retry=Retry(settle_seconds=1.0)),
            PERSON,
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


def labels(options: JiraOptions) -> Contract:
    """`jira.labels`: sets a few labels of many; only those that this run changed are put back."""
    return Contract(
        capability="jira.labels",
        summary="adds and removes labels of an issue",
        effect=Effect(kind="issue_labels", system="jira", resource="issue:{key}", changes="sets"),
        readers=Readers(audience="team", where="the issue, and whatever filters and boards select by label"),
        undo_cost="the changed labels come back; what a filter or an automation did meanwhile stays",
        reversibility="compensatable",
        identity=Identity(fields=("key",), cardinality="many", value_fields=("add", "remove")),
        keying=Keying(kind="probeable"),
        confirm="probe",
        probe=by_id(options),
        reference=Reference(field="key", pattern=KEY),
        restores_before_image=True,
        compensation=(
            Alternative(name="restore", when={"labels": ("ours",)}, retry=Retry(settle_seconds=1.0)),
            PERSON,
        ),
        signal=Signal(
            visible_to="everybody who reads or watches the issue",
            place="jira:{key}",
            seen="other labels on issue {key}",
            reader_must="go by the labels the issue shows now",
            comes_back="when the work is done again, the labels are set again",
        ),
        limits=Limits(timeout_seconds=options.timeout_seconds),
        escalation=EscalationRule(evidence_fields=("key", "add", "remove")),
        input={"key": "String", "project": "String", "add": "Set<String>", "remove": "Set<String>"},
    )

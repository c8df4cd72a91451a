"""The contracts of the Slack capabilities: what people see, what can be taken back, and how it is found again."""

from __future__ import annotations

from amends.spi import (
    Alternative,
    Contract,
    Effect,
    EscalationRule,
    Identity,
    Json,
    Keying,
    Limits,
    Outcome,
    ProbeRule,
    Readers,
    Reference,
    Release,
    Retry,
    Signal,
)
from amends_slack.options import SlackOptions

MESSAGE_REFERENCE = r"[CDG][A-Z0-9_]+/\d{1,12}\.\d{1,9}"

_IN_CHANNEL = Readers(audience="team", where="the Slack channel, and the notifications it raised")
_ESCALATION = EscalationRule(evidence_fields=("channel", "ts"))


def post(options: SlackOptions) -> Contract:
    """`slack.post`: irreversible, because readers and notifications cannot be taken back."""
    return Contract(
        capability="slack.post",
        summary="posts a message in a channel",
        effect=Effect(kind="message", system="slack", resource="channel:{channel}"),
        readers=_IN_CHANNEL,
        undo_cost="the message can go or be marked withdrawn; whoever read it has read it",
        reversibility="irreversible",
        identity=Identity(fields=("channel",)),
        keying=Keying(kind="probeable"),
        probe=_listing(options),
        reference=Reference(field="message", pattern=MESSAGE_REFERENCE),
        compensation=_correction_ladder(),
        signal=_signal("a message in this channel that an agent run posted"),
        release=Release(mode="on_success"),
        limits=Limits(timeout_seconds=options.timeout_seconds),
        escalation=_ESCALATION,
        input={"channel": "String", "mentions_everyone": "Bool"},
    )


def reply(options: SlackOptions) -> Contract:
    """`slack.reply`: a post in a thread; the thread is resolved before and verified after."""
    return post(options).model_copy(
        update={
            "capability": "slack.reply",
            "summary": "posts a message in a thread",
            "effect": Effect(kind="message", system="slack", resource="thread:{channel}/{thread_ts}"),
            "identity": Identity(fields=("channel", "thread_ts")),
            "signal": _signal("a message in this thread that an agent run posted", "slack:{channel}/{root_ts}"),
        }
    )


def update(options: SlackOptions) -> Contract:
    """`slack.update`: sets a message's text; the former text is the before-image and can be put back."""
    return Contract(
        capability="slack.update",
        summary="replaces the text of a message this bot wrote",
        effect=Effect(kind="message_text", system="slack", resource="message:{channel}/{ts}", changes="sets"),
        readers=_IN_CHANNEL,
        undo_cost="the former text comes back, marked as edited; the text between may have been read",
        reversibility="compensatable",
        identity=Identity(fields=("channel", "ts"), cardinality="many", value_fields=("text",)),
        keying=Keying(kind="probeable"),
        confirm="probe",
        probe=_by_id(options),
        reference=Reference(field="message", pattern=MESSAGE_REFERENCE),
        restores_before_image=True,
        compensation=(
            Alternative(name="restore", when={"message": ("updated",)}, retry=Retry(attempts=3, settle_seconds=1.0)),
            Alternative(name="person", undo="escalate"),
        ),
        signal=_signal("the changed text of this message"),
        limits=Limits(timeout_seconds=options.timeout_seconds),
        escalation=_ESCALATION,
        input={"channel": "String", "mentions_everyone": "Bool"},
    )


def delete(options: SlackOptions) -> Contract:
    """`slack.delete`: irreversible; a new message would have another ts, other replies and other reactions."""
    return Contract(
        capability="slack.delete",
        summary="deletes a message",
        effect=Effect(kind="message_removal", system="slack", resource="message:{channel}/{ts}", changes="sets"),
        readers=_IN_CHANNEL,
        undo_cost="none: the message, its replies and reactions do not come back",
        reversibility="irreversible",
        identity=Identity(fields=("channel", "ts")),
        keying=Keying(kind="probeable"),
        confirm="probe",
        probe=_by_id(options),
        reference=Reference(field="message", pattern=MESSAGE_REFERENCE),
        signal=Signal(
            visible_to="everyone in the channel",
            place=f"person:{options.removals_told}" if options.removals_told else "slack:{channel}/{ts}",
            seen="that a message in {channel} disappeared",
            reader_must="nothing; ask the owner if you still need what it said",
            comes_back="it does not come back",
        ),
        release=Release(mode="on_approval"),
        limits=Limits(timeout_seconds=options.timeout_seconds),
        escalation=_ESCALATION,
        input={"channel": "String"},
    )


def schedule(options: SlackOptions) -> Contract:
    """`slack.schedule`: nobody reads it until it fires, and until then it can be taken back.

    Its place has a ts only once it has fired: taken back before that, there is nobody to tell.
    """
    return Contract(
        capability="slack.schedule",
        summary="schedules a message that Slack posts later",
        effect=Effect(kind="scheduled_message", system="slack", resource="channel:{channel}"),
        readers=Readers(audience="team", where="nowhere before it fires; then in the Slack channel"),
        undo_cost="none before it fires; after that a person decides about the posted message",
        reversibility="compensatable",
        identity=Identity(fields=("channel",)),
        keying=Keying(kind="probeable"),
        confirm="probe",
        probe=_listing(options).model_copy(update={"counts": False}),
        reference=Reference(field="scheduled", pattern=rf"[CDG][A-Z0-9_]+/Q[A-Za-z0-9_]+|{MESSAGE_REFERENCE}"),
        compensation=(
            Alternative(name="unschedule", when={"scheduled": ("pending",)}, harmless_when_absent=True),
            Alternative(name="person", undo="escalate"),
        ),
        signal=_signal("a scheduled message in this channel that an agent run had prepared"),
        limits=Limits(timeout_seconds=options.timeout_seconds),
        escalation=EscalationRule(evidence_fields=("channel", "scheduled_message_id", "post_at")),
        input={"channel": "String", "mentions_everyone": "Bool", "post_at": "Long"},
    )


def ephemeral(options: SlackOptions) -> Contract:
    """`slack.ephemeral`: no history shows it, so it is neither found again nor taken back."""
    return Contract(
        capability="slack.ephemeral",
        summary="shows a message to one person in a channel",
        effect=Effect(kind="message", system="slack", resource="person:{person}"),
        readers=Readers(audience="team", where="one person's view of the channel, until they reload"),
        undo_cost="none: it cannot be taken away; the person is told",
        reversibility="irreversible",
        identity=Identity(fields=("channel", "person")),
        keying=Keying(kind="blind"),
        reference=Reference(field="message", pattern=MESSAGE_REFERENCE),
        signal=Signal(
            visible_to="one person",
            place="person:{person}",
            seen="a message that only you could see, in channel {channel}",
            reader_must="do not act on it; if you already did, tell the owner",
            comes_back="if the work is done again, a new message says so",
        ),
        release=Release(mode="on_success"),
        limits=Limits(timeout_seconds=options.timeout_seconds),
        escalation=EscalationRule(evidence_fields=("channel", "person")),
        input={"channel": "String", "person": "String"},
    )


def upload(options: SlackOptions) -> Contract:
    """`slack.upload`: the file and its showing are two parts, because Slack does the second later, or never."""
    present: dict[str, tuple[Json, ...]] = {"file": ("present",)}
    return Contract(
        capability="slack.upload",
        summary="uploads a file and shows it in a channel",
        effect=Effect(kind="file", system="slack", resource="channel:{channel}"),
        readers=_IN_CHANNEL,
        undo_cost="the file can be deleted everywhere; whoever opened or kept it has it",
        reversibility="irreversible",
        identity=Identity(fields=("channel",)),
        keying=Keying(kind="probeable"),
        confirm="probe",
        probe=_listing(options),
        reference=Reference(field="file", pattern=r"F[A-Za-z0-9_]+"),
        compensation=(
            Alternative(
                name="delete",
                when=present,
                harmless_when_absent=True,
                retry=Retry(attempts=3, settle_seconds=1.0),
            ),
            Alternative(name="thread_correction", when={**present, "share": ("shown",)}, undo="correct"),
            Alternative(name="person", undo="escalate"),
        ),
        signal=_signal("a file in this channel that an agent run uploaded"),
        release=Release(mode="on_success"),
        limits=Limits(timeout_seconds=options.timeout_seconds),
        escalation=EscalationRule(evidence_fields=("channel", "file")),
        input={"channel": "String", "path": "String"},
        parts=("file", "share"),
    )


def correction(options: SlackOptions) -> Contract:
    """`slack.correction`: serves `slack:{channel}/{ts}` and posts in that very thread or nowhere."""
    return _corrector(
        options, "slack.correction", "posts a correction in the thread of a message", "the thread of the message"
    )


def note(options: SlackOptions) -> Contract:
    """`slack.note`: serves `person:{name}` and writes a direct message."""
    return _corrector(
        options, "slack.note", "writes a correction to a person", "the person's direct messages with this bot"
    )


def _corrector(options: SlackOptions, capability: str, summary: str, where: str) -> Contract:
    return Contract(
        capability=capability,
        summary=summary,
        effect=Effect(kind="correction", system="slack", resource="place:{place}"),
        readers=Readers(audience="team", where=where),
        undo_cost="none: a later change is a reply",
        reversibility="irreversible",
        identity=Identity(fields=("place",)),
        keying=Keying(kind="probeable"),
        probe=_listing(options),
        reference=Reference(field="message", pattern=MESSAGE_REFERENCE),
        signal=Signal(
            visible_to="whoever reads the place",
            place="{place}",
            seen="a correction about an agent run",
            reader_must="follow the latest correction of that run",
            comes_back="a later change is posted as a reply",
        ),
        corrects=True,
        limits=Limits(timeout_seconds=options.timeout_seconds),
        escalation=EscalationRule(evidence_fields=("place",)),
    )


def _correction_ladder() -> tuple[Alternative, ...]:
    """Delete, else mark as withdrawn, else say so in the thread, else a person: a sent message is never undone.

    A message that somebody has answered is not deleted: its thread would lose its head, and its readers the reason.
    """
    posted: dict[str, tuple[Json, ...]] = {"message": ("posted",)}
    return (
        Alternative(
            name="delete",
            when={**posted, "answered": ("no",)},
            safe_when=(Outcome.SUCCEEDED,),
            harmless_when_absent=True,
            retry=Retry(attempts=3, settle_seconds=1.0),
        ),
        Alternative(name="withdraw", when=posted, harmless_when_absent=True, retry=Retry(attempts=3)),
        Alternative(name="thread_correction", when=posted, undo="correct"),
        Alternative(name="person", undo="escalate"),
    )


def _signal(seen: str, place: str = "slack:{channel}/{ts}") -> Signal:
    return Signal(
        visible_to="everyone in the channel",
        place=place,
        seen=seen,
        reader_must="do not act on it; if you already did, tell the owner",
        comes_back="if the work is done again, a new message says so",
    )


def _listing(options: SlackOptions) -> ProbeRule:
    """Complete paging of the channel or thread, filtered by our marker on our side."""
    return ProbeRule(
        strength="list",
        schedule_seconds=(0.0, 1.0, 4.0, 15.0, 60.0),
        deadline_seconds=options.probe_deadline_seconds,
        absent_final_after_seconds=options.absent_final_after_seconds,
        counts=True,
    )


def _by_id(options: SlackOptions) -> ProbeRule:
    """One message by its ts."""
    return _listing(options).model_copy(update={"strength": "id", "counts": False})

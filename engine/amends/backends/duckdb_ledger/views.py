"""The tables and views of the ledger, described in the order in which they are made."""

from __future__ import annotations

from amends.backends.duckdb_ledger.catalog import View, columns

_PLACE = """
tenant | VARCHAR | | the run's tenant
workflow | VARCHAR | | the run's workflow
capability | VARCHAR | | the operation, such as `git.push`; empty where no action is meant
system | VARCHAR | | the outside system the contract names
provider | VARCHAR | | the adapter instance
"""

_EVENTS = columns("""
seq | BIGINT | | place in the whole ledger, the same as in the journal
event_id | VARCHAR | | UUIDv7 of the event
ts_us | BIGINT | microseconds UTC | ledger time
run_id | VARCHAR | | the run, or `system`
run_seq | BIGINT | | dense place within the run
action_id | VARCHAR | | the action; empty for a fact of the run
slot | VARCHAR | | identity of the intent in the run
generation | BIGINT | | a fresh try of the slot after a proven failure
attempt | BIGINT | | sends of the action so far
epoch | BIGINT | | rises at every take-over of the run
kind | VARCHAR | | what happened
status | VARCHAR | | the action's status after the event; for a fact of the run, the run's
outcome | VARCHAR | | what was known of the effect after the event
capability | VARCHAR | | the operation
system | VARCHAR | | the outside system the contract names
provider | VARCHAR | | the adapter instance
tenant | VARCHAR | | the run's tenant
workflow | VARCHAR | | the run's workflow
policy_version | VARCHAR | | of the decision; for other events of an action, of its forward decision
decision_id | VARCHAR | | likewise
payload | VARCHAR | | the event's body: JSON, redacted
digest | VARCHAR | | SHA-256 over the columns above (without `seq`)
prev_hash | VARCHAR | | hash of the event before it in its run
hash | VARCHAR | | SHA-256 over `prev_hash` and `digest`
ts | TIMESTAMP | UTC | ledger time
""")

_PROBLEMS = columns("""
seq | BIGINT | | the event's place
run_id | VARCHAR | | its run
problem | VARCHAR | | what is wrong with it
""")

_RUNS = columns("""
run_id | VARCHAR | | the run
tenant | VARCHAR | | its tenant
workflow | VARCHAR | | its workflow
run_key | VARCHAR | | its key within the workflow
agent | VARCHAR | | who acts
initiator | VARCHAR | | who asked
owner | VARCHAR | | the named person who answers for it
intent_ref | VARCHAR | | the user's request
success_check | VARCHAR | | the registered success check
caused_by | VARCHAR | | the terminal run it follows up
status | VARCHAR | | where it stands
reason | VARCHAR | | why it moved there
epoch | BIGINT | | take-overs, from 1
check_answer | VARCHAR | | last answer of its check: passed, not_passed, unknown
actions | BIGINT | count | actions registered, of every kind
events | BIGINT | count | events recorded
entered_needs_human | BOOLEAN | | it once waited for a person
opened | TIMESTAMP | UTC | when it began
moved | TIMESTAMP | UTC | when its status last changed
updated | TIMESTAMP | UTC | its latest event
""")

_ACTIONS = columns(f"""
run_id | VARCHAR | | its run
action_id | VARCHAR | | the action
run_seq | BIGINT | | place of its registration in the run
action_kind | VARCHAR | | do, undo, correct, duplicate; `unreadable` if its registration is corrupt
of_action | VARCHAR | | the forward action of an undo or duplicate
rung | VARCHAR | | the compensation alternative of an undo
{_PLACE.strip()}
adapter | VARCHAR | | the adapter
environment | VARCHAR | | the configured environment
slot | VARCHAR | | identity of the intent in the run
label | VARCHAR | | the caller's label
generation | BIGINT | | a fresh try of the slot after a proven failure
attempts | BIGINT | count | sends
status | VARCHAR | | where it stands
outcome | VARCHAR | | what is known of its effect: none, succeeded, failed, unknown
resource | VARCHAR | | what it changes
request_digest | VARCHAR | | keyed digest of its arguments
provider_reference | VARCHAR | | the provider's own id of the effect
effect_kind | VARCHAR | | the kind of effect its contract declares
effect | JSON | | the effect as last recorded
reversibility | VARCHAR | | reversible, compensatable, irreversible
audience | VARCHAR | | who can see it
compensation | VARCHAR[] | | the registered alternatives, in order
undo_action | VARCHAR | | the undo action started last
last_error_code | VARCHAR | | of the last outcome that had an error
last_error_message | VARCHAR | | likewise, redacted
parked_cause | VARCHAR | | why it waits for a person, while it does
required | BOOLEAN | | the run cannot commit without it
depends_on | VARCHAR[] | | declared dependencies; NULL: none declared
policy_version | VARCHAR | | of its forward decision (an undo: of its own)
decision_id | VARCHAR | | likewise
created | TIMESTAMP | UTC | registered
sent | TIMESTAMP | UTC | first intent
updated | TIMESTAMP | UTC | latest event
""")

_ATTEMPTS = columns(f"""
run_id | VARCHAR | | its run
action_id | VARCHAR | | its action
attempt | BIGINT | | which send, from 1
seq | BIGINT | | place of its intent in the ledger
action_kind | VARCHAR | | do, undo, correct
{_PLACE.strip()}
slot | VARCHAR | | identity of the intent in the run
generation | BIGINT | | of the slot
epoch | BIGINT | | of the driver that sent it
policy_version | VARCHAR | | of the forward decision
decision_id | VARCHAR | | likewise
idempotency_key | VARCHAR | | the key that was sent
approval_id | VARCHAR | | the approval it used
outcome | VARCHAR | | last known outcome of this attempt; none: no outcome was recorded
ever_unknown | BOOLEAN | | its outcome was unknown once, or never recorded
error_code | VARCHAR | | of its last outcome
sent | TIMESTAMP | UTC | the intent was durable
deadline | TIMESTAMP | UTC | of the call
answered | TIMESTAMP | UTC | first outcome
first_unknown | TIMESTAMP | UTC | first unknown outcome
resolved | TIMESTAMP | UTC | first succeeded or failed after it
answer_seconds | DOUBLE | seconds | from intent to first outcome
""")

_DECISIONS = columns(f"""
seq | BIGINT | | place in the ledger
ts | TIMESTAMP | UTC | when policy was asked
run_id | VARCHAR | | the run
action_id | VARCHAR | | the action
{_PLACE.strip()}
decision_id | VARCHAR | | the decision
phase | VARCHAR | | forward, probe, undo, release, correct
verdict | VARCHAR | | allow, deny, needs_approval
policy_action | VARCHAR | | the action name policy was asked about
tier | BIGINT | | the approval tier it needs
policy_ids | VARCHAR[] | | the policies that determined it
policy_version | VARCHAR | | the bundle
effective_digest | VARCHAR | | baseline, plugins and bundle together
code | VARCHAR | | such as `no_permit`, `forbidden`, `policy_error`
reasons | VARCHAR[] | | in the policies' words
roles | VARCHAR[] | | roles that could approve
principal | VARCHAR | | who asked
resource | VARCHAR | | about what
""")

_EVIDENCE = columns(f"""
seq | BIGINT | | place in the ledger
ts | TIMESTAMP | UTC | when it was recorded
run_id | VARCHAR | | the run
action_id | VARCHAR | | the action
attempt | BIGINT | | the attempt it speaks of
event_kind | VARCHAR | | the event that carries it
{_PLACE.strip()}
source | VARCHAR | | response, probe, late, person, takeover, adopted
strength | VARCHAR | | proof, authoritative, weak; NULL for what a probe saw
says | VARCHAR | | the outcome it speaks for
seen | VARCHAR | | what a probe saw: applied, absent, many, diverged, inconclusive
purpose | VARCHAR | | why a probe was sent
code | VARCHAR | | such as `not_sent`, `timeout`, `probe_applied`
detail | VARCHAR | | in words, redacted
person | VARCHAR | | who said it, where a person did
provider_reference | VARCHAR | | the provider's own id of the effect
""")

_RECOVERY_DECISIONS = columns(f"""
seq | BIGINT | | place in the ledger
ts | TIMESTAMP | UTC | when it was decided
run_id | VARCHAR | | the run
action_id | VARCHAR | | the action
{_PLACE.strip()}
status | VARCHAR | | the action's status then
outcome | VARCHAR | | what was known of its effect then
epoch | BIGINT | | of the driver that decided
decision | VARCHAR | | the step: wait, reconcile, compensate, correct, escalate, skip, release and others
reason | VARCHAR | | why
facts | JSON | | what the decision rests on
due | TIMESTAMP | UTC | when it is looked at again
""")

_COMPENSATIONS = columns(f"""
run_id | VARCHAR | | the run
action_id | VARCHAR | | the forward action that is compensated
{_PLACE.strip()}
policy_version | VARCHAR | | of its forward decision
status | VARCHAR | | where the forward action stands
rungs | VARCHAR[] | | alternatives started, in order
undo_actions | BIGINT | count | undo actions registered
undo_sends | BIGINT | count | their sends
how | VARCHAR | | undone, already_gone, nothing_to_undo, person
reappeared | BIGINT | count | times the effect was seen again after it had been verified gone
second_look | VARCHAR | | what was seen after that: absent, inconclusive, applied; NULL: not looked yet
started | TIMESTAMP | UTC | first undo
verified | TIMESTAMP | UTC | the effect was seen to be gone, and is so still
""")

_OUTBOX = columns(f"""
run_id | VARCHAR | | the run
action_id | VARCHAR | | the irreversible action
{_PLACE.strip()}
policy_version | VARCHAR | | of its forward decision
resource | VARCHAR | | what it changes
release_mode | VARCHAR | | on_success, on_approval, gate
content_digest | VARCHAR | | of what would be sent
status | VARCHAR | | where the action stands
state | VARCHAR | | waiting, released, withdrawn, denied
queued | TIMESTAMP | UTC | entered the outbox
departed | TIMESTAMP | UTC | left it
waited_seconds | DOUBLE | seconds | from entry to departure, or to now
""")

_APPROVALS = columns(f"""
approval_id | VARCHAR | | the question
run_id | VARCHAR | | the run
action_id | VARCHAR | | the action
{_PLACE.strip()}
phase | VARCHAR | | forward, release: planned; undo, correct: in recovery
status | VARCHAR | | pending, approved, refused, expired, voided, withdrawn, consumed
tier | BIGINT | | asked for
roles | VARCHAR[] | | who may approve; empty: any person
reasons | VARCHAR[] | | why a person is asked
shown_digest | VARCHAR | | digest of exactly what was shown
approvers | VARCHAR[] | | who said yes
granted_tier | BIGINT | | highest tier given
answered_by | VARCHAR | | who answered last
channel | VARCHAR | | by which channel
comment | VARCHAR | | in their words
asked | TIMESTAMP | UTC | when
expires | TIMESTAMP | UTC | no yes counts after this
given | TIMESTAMP | UTC | first yes
closed | TIMESTAMP | UTC | refused, expired, voided or withdrawn
used | TIMESTAMP | UTC | consumed by an intent
""")

_ESCALATIONS = columns(f"""
escalation_id | VARCHAR | | the work item
run_id | VARCHAR | | the run
action_id | VARCHAR | | the action; empty for the whole run
{_PLACE.strip()}
cause | VARCHAR | | why automation stopped
status | VARCHAR | | open, acknowledged, resolved
queue | VARCHAR | | where it waits
owner | VARCHAR | | who answers for it
known | VARCHAR | | what is known
in_doubt | VARCHAR | | what is not
proposed | VARCHAR | | what is proposed
choices | VARCHAR[] | | named by consequence
deliveries | BIGINT | count | notifications tried
delivered | BOOLEAN | | one arrived
acknowledged_by | VARCHAR | | who has seen it
choice | VARCHAR | | what was chosen
resolved_by | VARCHAR | | by whom
channel | VARCHAR | | by which channel
comment | VARCHAR | | in their words
opened | TIMESTAMP | UTC | when
deadline | TIMESTAMP | UTC | until when
notified | TIMESTAMP | UTC | last notification
acknowledged | TIMESTAMP | UTC | first seen by a person
resolved | TIMESTAMP | UTC | decided
""")

_CORRECTIONS = columns(f"""
run_id | VARCHAR | | the run
action_id | VARCHAR | | the action that posts it
{_PLACE.strip()}
place | VARCHAR | | where it is posted
revision | BIGINT | | later changes are replies
covers | VARCHAR[] | | the actions it speaks of
status | VARCHAR | | where it stands
outcome | VARCHAR | | what is known of the posting
attempts | BIGINT | count | sends
provider_reference | VARCHAR | | the posting's own id
args | JSON | | what is posted
created | TIMESTAMP | UTC | registered
posted | TIMESTAMP | UTC | first known to be there
""")

VIEWS: tuple[View, ...] = (
    View(
        "events",
        "Every event of the journal: the table all views are made from.",
        _EVENTS,
        "SELECT seq, ts, kind, status FROM events ORDER BY seq DESC LIMIT 20;",
    ),
    View(
        "problems",
        "What was found wrong with an event when it was mirrored; empty in a sound ledger.",
        _PROBLEMS,
        "SELECT p.seq, p.problem, e.kind FROM problems p JOIN events e USING (seq);",
    ),
    View(
        "runs",
        "One row per run.",
        _RUNS,
        "SELECT status, count(*) FROM runs GROUP BY status;",
    ),
    View(
        "actions",
        "One row per action: the agent's calls, their undos, corrections, and twins that a provider made.",
        _ACTIONS,
        "SELECT capability, resource, status, last_error_code FROM actions WHERE outcome = 'unknown';",
    ),
    View(
        "attempts",
        "One row per send, counted when its intent is written.",
        _ATTEMPTS,
        "SELECT provider, quantile_cont(answer_seconds, 0.95) FROM attempts GROUP BY provider;",
    ),
    View(
        "decisions",
        "One row per recorded authorization.",
        _DECISIONS,
        "SELECT policy_action, code, count(*) FROM decisions WHERE verdict = 'deny' GROUP BY ALL;",
    ),
    View(
        "evidence",
        "One row per fact that a classification rests on.",
        _EVIDENCE,
        "SELECT ts, source, says, seen, code FROM evidence ORDER BY seq;",
    ),
    View(
        "recovery_decisions",
        "One row per planned step, with the facts it rests on.",
        _RECOVERY_DECISIONS,
        "SELECT decision, reason, count(*) FROM recovery_decisions GROUP BY ALL ORDER BY 3 DESC;",
    ),
    View(
        "compensations",
        "One row per forward action whose compensation was started or verified.",
        _COMPENSATIONS,
        "SELECT action_id, rungs, undo_sends FROM compensations WHERE verified IS NULL;",
    ),
    View(
        "outbox",
        "One row per irreversible action that entered the outbox.",
        _OUTBOX,
        "SELECT capability, resource, waited_seconds FROM outbox WHERE state = 'waiting';",
    ),
    View(
        "approvals",
        "One row per question to people.",
        _APPROVALS,
        "SELECT approval_id, tier, roles, expires FROM approvals WHERE status = 'pending';",
    ),
    View(
        "escalations",
        "One row per work item for a person.",
        _ESCALATIONS,
        "SELECT queue, cause, in_doubt, deadline FROM escalations WHERE status <> 'resolved';",
    ),
    View(
        "corrections",
        "One row per note posted where people had seen a signal.",
        _CORRECTIONS,
        "SELECT place, revision, status, posted FROM corrections;",
    ),
)

"""The metrics of the ledger, described. No single one is a target: `docs/ledger.md` says why."""

from __future__ import annotations

from amends.backends.duckdb_ledger.catalog import Metric, columns

_GROUP = """
day | DATE | UTC | the day of the moment this metric selects by
tenant | VARCHAR | | the run's tenant
workflow | VARCHAR | | the run's workflow
capability | VARCHAR | | the operation; empty for facts of a whole run
system | VARCHAR | | the outside system the contract names
provider | VARCHAR | | the adapter instance
policy_version | VARCHAR | | the policy bundle of the forward decision; empty before there was one
"""

METRICS: tuple[Metric, ...] = (
    Metric(
        "unknown_rate",
        "How often it was not known whether a forward call had landed, crashes included.",
        "ratio",
        "the intent",
        columns(f"""
{_GROUP.strip()}
intents | BIGINT | count | forward sends
ever_unknown | BIGINT | count | of them, unknown once or never answered
unanswered | BIGINT | count | of them, without any recorded outcome: in flight, or the process died
rate | DOUBLE | ratio 0 to 1 | `ever_unknown` ÷ `intents`
"""),
        "SELECT capability, sum(ever_unknown) / sum(intents) FROM unknown_rate GROUP BY capability;",
    ),
    Metric(
        "time_to_resolution",
        "How long an unknown outcome of a forward call stayed unknown; open ones are counted apart.",
        "seconds",
        "the first unknown (of an unanswered call: its intent)",
        columns(f"""
{_GROUP.strip()}
unknowns | BIGINT | count | forward sends ever unknown
resolved | BIGINT | count | of them, later proven succeeded or failed
closed_unresolved | BIGINT | count | of them, settled without: found gone, accepted by a person, withdrawn
open | BIGINT | count | of them, neither
median_seconds | DOUBLE | seconds | from first unknown to the proof, of the resolved
p95_seconds | DOUBLE | seconds | likewise, 95th percentile
"""),
        "SELECT system, resolved, open, median_seconds FROM time_to_resolution('2026-01-01', '2026-02-01');",
    ),
    Metric(
        "compensation_success",
        "How many started compensations ended with the effect seen to be gone.",
        "ratio",
        "the first undo of a forward action",
        columns(f"""
{_GROUP.strip()}
started | BIGINT | count | forward actions whose compensation was started
verified | BIGINT | count | of them, a separate read found the effect gone
by_person | BIGINT | count | of them, a person said so
parked | BIGINT | count | of them, waiting for a person
accepted | BIGINT | count | of them, taken as is by a person
open | BIGINT | count | of them, going on
rate | DOUBLE | ratio 0 to 1 | `verified` ÷ (`started` - `open`); NULL while all go on
"""),
        "SELECT capability, sum(verified), sum(parked) FROM compensation_success GROUP BY capability;",
    ),
    Metric(
        "compensation_rate",
        "How many effects that came to exist were taken back.",
        "ratio",
        "the first known success",
        columns(f"""
{_GROUP.strip()}
effects | BIGINT | count | forward actions known to have had their effect, twins included, adopted ones not
compensated | BIGINT | count | of them, verified gone at least once
rate | DOUBLE | ratio 0 to 1 | `compensated` ÷ `effects`
"""),
        "SELECT workflow, sum(compensated) / sum(effects) FROM compensation_rate GROUP BY workflow;",
    ),
    Metric(
        "compensation_retries",
        "How many undo sends were needed beyond one.",
        "count",
        "the first undo of a forward action",
        columns(f"""
{_GROUP.strip()}
compensations | BIGINT | count | forward actions with an undo sent
undo_sends | BIGINT | count | sends of all their undo actions
retries | BIGINT | count | sends beyond the first of each forward action
most_sends | BIGINT | count | of one forward action
retries_each | DOUBLE | count | `retries` ÷ `compensations`
"""),
        "SELECT provider, sum(retries), max(most_sends) FROM compensation_retries GROUP BY provider;",
    ),
    Metric(
        "escalation_rate",
        "How many runs came to wait for a person because automation had to stop; planned approvals are counted apart.",
        "ratio",
        "the run's beginning",
        columns(f"""
{_GROUP.strip()}
runs | BIGINT | count | runs with a forward action of this group (a run counts once in each of its groups)
needs_human | BIGINT | count | of them, entered `needs_human`
planned_approvals | BIGINT | count | of them, asked for a planned approval (forward or release)
rate | DOUBLE | ratio 0 to 1 | `needs_human` ÷ `runs`
"""),
        "SELECT day, capability, needs_human, runs FROM escalation_rate ORDER BY rate DESC;",
    ),
    Metric(
        "unregistered_inverse",
        "How often an agent tried to undo an effect of its run by a call that is not the registered compensation.",
        "ratio",
        "the call's registration",
        columns(f"""
{_GROUP.strip()}
calls | BIGINT | count | forward calls registered
unregistered | BIGINT | count | of them, denied as an unregistered inverse
rate | DOUBLE | ratio 0 to 1 | `unregistered` ÷ `calls`
"""),
        "SELECT day, capability, unregistered FROM unregistered_inverse WHERE unregistered > 0;",
    ),
    Metric(
        "duplicate_effects",
        "How often a provider made an effect twice.",
        "ratio",
        "the original call's registration",
        columns(f"""
{_GROUP.strip()}
effects | BIGINT | count | forward actions known to have had their effect, without twins
duplicates | BIGINT | count | twins found that bear our marker
rate | DOUBLE | ratio | `duplicates` ÷ `effects`; NULL without effects
"""),
        "SELECT provider, sum(duplicates) FROM duplicate_effects GROUP BY provider;",
    ),
    Metric(
        "contradicted_outcomes",
        "How often something taken as certain turned out otherwise: an outcome changed, or an effect came back.",
        "ratio",
        "the first certain word about the attempt",
        columns(f"""
{_GROUP.strip()}
judged | BIGINT | count | attempts with a succeeded or failed outcome, or a verified compensation
contradicted | BIGINT | count | of them, later evidence said otherwise
rate | DOUBLE | ratio 0 to 1 | `contradicted` ÷ `judged`
"""),
        "SELECT system, sum(contradicted), sum(judged) FROM contradicted_outcomes GROUP BY system;",
    ),
    Metric(
        "open_unknowns",
        "What is unknown now, and for how long.",
        "seconds",
        "the moment it became unknown (of an overdue call: its intent)",
        columns(f"""
{_GROUP.strip()}
action_kind | VARCHAR | | do, undo, correct
open | BIGINT | count | actions whose outcome is unknown now
overdue | BIGINT | count | sends past their call deadline without any recorded outcome
median_seconds | DOUBLE | seconds | age of both
oldest_seconds | DOUBLE | seconds | age of the oldest
"""),
        "SELECT capability, open, overdue, oldest_seconds FROM open_unknowns ORDER BY oldest_seconds DESC;",
    ),
    Metric(
        "queue_age",
        "How long things wait in the outbox, for approvals and in escalation queues.",
        "seconds",
        "the entry into the queue",
        columns(f"""
{_GROUP.strip()}
queue | VARCHAR | | outbox, approvals, escalations
waiting | BIGINT | count | still there
median_seconds | DOUBLE | seconds | age of those
oldest_seconds | DOUBLE | seconds | age of the oldest
departed | BIGINT | count | no longer there
median_wait_seconds | DOUBLE | seconds | how long those waited
"""),
        "SELECT queue, sum(waiting), max(oldest_seconds) FROM queue_age GROUP BY queue;",
    ),
    Metric(
        "time_in_state",
        "How long actions and runs stay in each status.",
        "seconds",
        "the entry into the status",
        columns(f"""
{_GROUP.strip()}
subject | VARCHAR | | action or run
status | VARCHAR | | the status
visits | BIGINT | count | entries into it
ended | BIGINT | count | of them, left again
open | BIGINT | count | of them, not left
median_seconds | DOUBLE | seconds | stay of those that left
p95_seconds | DOUBLE | seconds | likewise, 95th percentile
total_seconds | DOUBLE | seconds | sum of their stays
"""),
        "SELECT status, sum(ended), max(p95_seconds) FROM time_in_state WHERE subject = 'run' GROUP BY status;",
    ),
)


def metric_sql(name: str, *, windowed: bool = False) -> str:
    """The statement that asks for a metric; with `windowed` it takes two parameters, since and until (UTC, half open).

    Raises `KeyError` if there is no such metric.
    """
    metric = next((metric for metric in METRICS if metric.name == name), None)
    if metric is None:
        raise KeyError(name)
    return f"FROM {name}(?, ?)" if windowed else f"FROM {name}"

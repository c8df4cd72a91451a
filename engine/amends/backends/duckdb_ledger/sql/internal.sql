-- Helpers of the views and metrics. They may change without notice; the public names are in docs/ledger.md.

-- Payload access that answers NULL where a payload is corrupt, so that one bad row never fails a query.
CREATE OR REPLACE MACRO internal.text(payload, path) AS TRY(json_extract_string(payload, path));
CREATE OR REPLACE MACRO internal.texts(payload, path) AS TRY(json_extract(payload, path)::VARCHAR[]);
CREATE OR REPLACE MACRO internal.json(payload, path) AS TRY(json_extract(payload, path));
CREATE OR REPLACE MACRO internal.moment(us) AS
  CASE WHEN TRY_CAST(us AS BIGINT) BETWEEN 0 AND 253402300799999999 THEN make_timestamp(TRY_CAST(us AS BIGINT)) END;
CREATE OR REPLACE MACRO internal.seconds(from_us, until_us) AS CASE WHEN until_us < from_us THEN 0 ELSE until_us - from_us END / 1e6;

-- True if these people, who hold these roles between them, are all that a question asks for (an `approval_asked` payload).
CREATE OR REPLACE MACRO internal.approved(payload, approvers, held) AS
  len(approvers) >= coalesce(TRY_CAST(internal.text(payload, '$.people') AS BIGINT), 1)
  AND (coalesce(len(internal.texts(payload, '$.roles')), 0) = 0
    OR CASE internal.text(payload, '$.roles_together') WHEN 'true' THEN list_has_all(held, internal.texts(payload, '$.roles'))
      ELSE list_has_any(held, internal.texts(payload, '$.roles')) END);

-- The time ages are counted to: the clock of the engine that asks; elsewhere the database's own.
CREATE OR REPLACE MACRO internal.as_of_us() AS coalesce(getvariable('as_of_us'), epoch_us(now()));

-- One row per action: where it stands. A stale owner's late evidence moves nothing (rule 13).
CREATE OR REPLACE VIEW internal.standing AS
SELECT action_id, arg_max(status, seq) AS status, arg_max(outcome, seq) AS outcome, max(attempt) AS attempts,
  max(ts_us) AS updated_us,
  coalesce(arg_max(policy_version, seq) FILTER (kind <> 'decision_recorded' AND policy_version <> ''),
    arg_min(policy_version, seq) FILTER (policy_version <> ''), '') AS policy_version,
  coalesce(arg_max(decision_id, seq) FILTER (kind <> 'decision_recorded' AND decision_id <> ''),
    arg_min(decision_id, seq) FILTER (decision_id <> ''), '') AS decision_id
FROM events WHERE action_id <> '' AND kind <> 'evidence.late' GROUP BY action_id;

-- One row per action the agent asked for, or per twin of one: what is counted as a forward action.
CREATE OR REPLACE VIEW internal.forward AS
SELECT p.*, s.policy_version FROM internal.planned p JOIN internal.standing s USING (action_id)
WHERE p.action_kind IN ('do', 'duplicate');

-- One row per intent, with what became of that attempt. What a probe or a person finds out later counts for it too.
CREATE OR REPLACE VIEW internal.attempts AS
WITH told AS (
  SELECT action_id, attempt, min(seq) FILTER (outcome = 'unknown') AS unknown_seq,
    min(ts_us) FILTER (outcome = 'unknown') AS unknown_us, min(ts_us) AS answered_us,
    arg_max(outcome, seq) AS outcome, arg_max(seq, seq) AS outcome_seq
  FROM events WHERE kind = 'outcome_recorded' GROUP BY action_id, attempt
),
resolved AS (
  SELECT t.action_id, t.attempt, min(e.ts_us) AS resolved_us
  FROM told t
  JOIN events e ON e.action_id = t.action_id AND e.attempt = t.attempt AND e.seq > t.unknown_seq
  WHERE e.kind IN ('outcome_recorded', 'effect_reappeared') AND e.outcome IN ('succeeded', 'failed')
  GROUP BY t.action_id, t.attempt
)
SELECT i.seq, i.ts_us AS sent_us, i.run_id, i.action_id, i.attempt, p.action_kind, i.slot, i.generation, i.epoch,
  i.capability, i.system, i.provider, i.tenant, i.workflow, i.policy_version, i.decision_id,
  coalesce(t.outcome, 'none') AS outcome, t.outcome_seq, t.answered_us, t.answered_us IS NULL AS unanswered,
  t.unknown_us IS NOT NULL OR t.answered_us IS NULL AS ever_unknown,
  t.unknown_us, r.resolved_us
FROM events i
JOIN internal.planned p USING (action_id)
LEFT JOIN told t ON t.action_id = i.action_id AND t.attempt = i.attempt
LEFT JOIN resolved r ON r.action_id = i.action_id AND r.attempt = i.attempt
WHERE i.kind = 'intent_recorded';

-- One row per forward action of which an effect was known to exist, made by this run (an adopted one was not).
CREATE OR REPLACE VIEW internal.effects AS
SELECT p.action_id, p.action_kind, p.of_action, e.seq, e.ts_us, e.run_id, e.tenant, e.workflow, e.capability, e.system,
  e.provider, e.policy_version
FROM (
  SELECT action_id, min(seq) AS seq FROM events
  WHERE kind = 'outcome_recorded' AND outcome = 'succeeded' GROUP BY action_id
) f
JOIN internal.planned p USING (action_id)
JOIN events e ON e.seq = f.seq AND e.action_id = f.action_id
WHERE p.action_kind = 'duplicate' OR (p.action_kind = 'do' AND e.attempt > 0);

-- One row per forward action whose compensation was started, with the columns of its first start.
CREATE OR REPLACE VIEW internal.undone AS
WITH started AS (
  SELECT action_id, min(seq) AS seq FROM events WHERE kind = 'compensation_started' GROUP BY action_id
),
standing AS (
  SELECT action_id, arg_max(status, seq) AS status, arg_max(kind, seq) AS last_kind,
    arg_max(payload, seq) FILTER (kind = 'compensation_verified') AS verified
  FROM events
  WHERE kind IN ('compensation_started', 'compensation_verified', 'effect_reappeared', 'action_parked',
    'action_reopened', 'action_accepted', 'action_withdrawn', 'outcome_recorded')
    AND action_id IN (SELECT action_id FROM started)
  GROUP BY action_id
)
SELECT e.action_id, e.seq, e.ts_us, e.run_id, e.tenant, e.workflow, e.capability, e.system, e.provider,
  e.policy_version,
  CASE
    WHEN s.status = 'compensated' AND internal.text(s.verified, '$.how') = 'person' THEN 'by_person'
    WHEN s.status = 'compensated' THEN 'verified'
    WHEN s.status = 'needs_human' THEN 'parked'
    WHEN s.last_kind = 'action_accepted' THEN 'accepted'
    ELSE 'open'
  END AS state
FROM started f
JOIN events e ON e.seq = f.seq AND e.action_id = f.action_id
JOIN standing s ON s.action_id = f.action_id;

WITH claims AS (
  SELECT action_id, attempt, min(seq) AS seq, arg_min(outcome, seq) FILTER (kind = 'outcome_recorded') AS outcome,
    min(seq) FILTER (kind = 'outcome_recorded') AS outcome_seq
  FROM events
  WHERE kind = 'compensation_verified' OR (kind = 'outcome_recorded' AND outcome IN ('succeeded', 'failed'))
  GROUP BY action_id, attempt
),
later AS (
  SELECT action_id, attempt, seq, kind, outcome AS says FROM events WHERE kind IN ('outcome_recorded', 'effect_reappeared')
  UNION ALL
  SELECT action_id, attempt, seq, kind, internal.text(payload, '$.outcome') FROM events
  WHERE kind = 'evidence.late' AND internal.text(payload, '$.outcome') IN ('succeeded', 'failed')
    AND internal.text(payload, '$.evidence.strength') IN ('proof', 'authoritative')
),
contradicted AS (
  SELECT DISTINCT c.action_id, c.attempt
  FROM claims c JOIN later l ON l.action_id = c.action_id AND l.attempt = c.attempt AND l.seq > c.seq
  WHERE l.kind = 'effect_reappeared' OR (l.seq > c.outcome_seq AND l.says <> c.outcome)
)
SELECT e.ts::DATE AS day, e.tenant, e.workflow, e.capability, e.system, e.provider, e.policy_version,
  count(*) AS judged, count(*) FILTER (x.action_id IS NOT NULL) AS contradicted,
  count(*) FILTER (x.action_id IS NOT NULL) / count(*) AS rate
FROM claims c
JOIN events e ON e.seq = c.seq
LEFT JOIN contradicted x ON x.action_id = c.action_id AND x.attempt = c.attempt
WHERE e.ts >= since::TIMESTAMP AND e.ts < until::TIMESTAMP
GROUP BY ALL ORDER BY ALL

WITH last_known AS (
  SELECT action_id, max(seq) AS seq FROM events
  WHERE kind IN ('compensation_verified', 'action_accepted', 'action_withdrawn', 'effect_reappeared')
    OR (kind = 'outcome_recorded' AND outcome IN ('succeeded', 'failed'))
  GROUP BY action_id
),
doubts AS (
  SELECT u.action_id, min(u.seq) AS seq, false AS overdue
  FROM events u LEFT JOIN last_known k USING (action_id)
  WHERE u.kind = 'outcome_recorded' AND u.outcome = 'unknown' AND u.seq > coalesce(k.seq, 0) GROUP BY u.action_id
  UNION ALL
  SELECT a.action_id, a.seq, true
  FROM internal.attempts a JOIN events i ON i.seq = a.seq
  WHERE a.unanswered AND TRY_CAST(internal.text(i.payload, '$.deadline_us') AS BIGINT) < internal.as_of_us()
)
SELECT e.ts::DATE AS day, e.tenant, e.workflow, e.capability, e.system, e.provider, e.policy_version, p.action_kind,
  count(*) FILTER (NOT d.overdue) AS open, count(*) FILTER (d.overdue) AS overdue,
  median(internal.seconds(e.ts_us, internal.as_of_us())) AS median_seconds,
  max(internal.seconds(e.ts_us, internal.as_of_us())) AS oldest_seconds
FROM doubts d
JOIN events e ON e.seq = d.seq
JOIN internal.planned p ON p.action_id = d.action_id
WHERE e.ts >= since::TIMESTAMP AND e.ts < until::TIMESTAMP
GROUP BY ALL ORDER BY ALL

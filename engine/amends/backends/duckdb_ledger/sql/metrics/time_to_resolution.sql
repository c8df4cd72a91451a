WITH closed AS (
  SELECT action_id, max(seq) AS seq FROM events
  WHERE kind IN ('compensation_verified', 'action_accepted', 'action_withdrawn') GROUP BY action_id
),
unknowns AS (
  SELECT a.*, internal.moment(coalesce(a.unknown_us, a.sent_us)) AS since_ts, a.resolved_us IS NOT NULL AS resolved,
    a.resolved_us IS NULL AND c.action_id IS NOT NULL AS closed,
    internal.seconds(a.unknown_us, a.resolved_us) AS seconds
  FROM internal.attempts a LEFT JOIN closed c ON c.action_id = a.action_id AND c.seq > a.seq
  WHERE a.action_kind = 'do' AND a.ever_unknown
)
SELECT since_ts::DATE AS day, tenant, workflow, capability, system, provider, policy_version,
  count(*) AS unknowns, count(*) FILTER (resolved) AS resolved, count(*) FILTER (closed) AS closed_unresolved,
  count(*) FILTER (NOT resolved AND NOT closed) AS open,
  median(seconds) FILTER (resolved) AS median_seconds,
  quantile_cont(seconds, 0.95) FILTER (resolved) AS p95_seconds
FROM unknowns
WHERE since_ts >= since::TIMESTAMP AND since_ts < until::TIMESTAMP
GROUP BY ALL ORDER BY ALL

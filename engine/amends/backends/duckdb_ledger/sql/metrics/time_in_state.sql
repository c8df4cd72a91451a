WITH moves AS (
  SELECT CASE WHEN kind IN ('run_opened', 'run_moved') THEN 'run' ELSE 'action' END AS subject,
    CASE WHEN kind IN ('run_opened', 'run_moved') THEN run_id ELSE action_id END AS id,
    seq, ts_us, status, tenant, workflow, capability, system, provider, policy_version
  FROM events
  WHERE kind IN ('run_opened', 'run_moved')
    OR (action_id <> '' AND kind IN ('action_planned', 'action_denied', 'action_queued', 'approval_asked',
      'intent_recorded', 'outcome_recorded', 'compensation_started', 'compensation_verified', 'effect_reappeared',
      'action_withdrawn', 'action_parked', 'action_reopened', 'action_accepted'))
),
entries AS (
  SELECT * FROM moves
  QUALIFY status IS DISTINCT FROM lag(status) OVER (PARTITION BY subject, id ORDER BY seq)
),
visits AS (
  SELECT *, internal.seconds(ts_us, lead(ts_us) OVER (PARTITION BY subject, id ORDER BY seq)) AS seconds FROM entries
)
SELECT internal.moment(ts_us)::DATE AS day, tenant, workflow, capability, system, provider, policy_version, subject,
  status, count(*) AS visits, count(seconds) AS ended, count(*) - count(seconds) AS open,
  median(seconds) AS median_seconds, quantile_cont(seconds, 0.95) AS p95_seconds, sum(seconds) AS total_seconds
FROM visits
WHERE internal.moment(ts_us) >= since::TIMESTAMP AND internal.moment(ts_us) < until::TIMESTAMP
GROUP BY ALL ORDER BY ALL

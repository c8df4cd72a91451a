WITH opened AS (
  SELECT run_id, ts_us, tenant, workflow FROM events WHERE kind = 'run_opened'
    AND internal.moment(ts_us) >= since::TIMESTAMP AND internal.moment(ts_us) < until::TIMESTAMP
),
parked AS (SELECT DISTINCT run_id FROM events WHERE kind = 'run_moved' AND status = 'needs_human'),
asked AS (
  SELECT DISTINCT run_id FROM events
  WHERE kind = 'approval_asked' AND internal.text(payload, '$.phase') IN ('forward', 'release')
),
used AS (SELECT DISTINCT run_id, capability, system, provider, policy_version FROM internal.forward)
SELECT internal.moment(o.ts_us)::DATE AS day, o.tenant, o.workflow, coalesce(u.capability, '') AS capability,
  coalesce(u.system, '') AS system, coalesce(u.provider, '') AS provider,
  coalesce(u.policy_version, '') AS policy_version, count(*) AS runs,
  count(*) FILTER (p.run_id IS NOT NULL) AS needs_human, count(*) FILTER (a.run_id IS NOT NULL) AS planned_approvals,
  count(*) FILTER (p.run_id IS NOT NULL) / count(*) AS rate
FROM opened o
LEFT JOIN used u USING (run_id)
LEFT JOIN parked p USING (run_id)
LEFT JOIN asked a USING (run_id)
GROUP BY ALL ORDER BY ALL

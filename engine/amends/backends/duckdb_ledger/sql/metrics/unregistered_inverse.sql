SELECT internal.moment(f.ts_us)::DATE AS day, f.tenant, f.workflow, f.capability, f.system, f.provider,
  f.policy_version, count(*) AS calls, count(*) FILTER (d.action_id IS NOT NULL) AS unregistered,
  count(*) FILTER (d.action_id IS NOT NULL) / count(*) AS rate
FROM internal.forward f
LEFT JOIN (
  SELECT DISTINCT action_id FROM events
  WHERE kind = 'action_denied' AND starts_with(internal.text(payload, '$.code'), 'unregistered')
) d USING (action_id)
WHERE f.action_kind = 'do'
  AND internal.moment(f.ts_us) >= since::TIMESTAMP AND internal.moment(f.ts_us) < until::TIMESTAMP
GROUP BY ALL ORDER BY ALL

SELECT internal.moment(f.ts_us)::DATE AS day, f.tenant, f.workflow, f.capability, f.system, f.provider,
  f.policy_version, count(*) AS effects, count(*) FILTER (v.action_id IS NOT NULL) AS compensated,
  count(*) FILTER (v.action_id IS NOT NULL) / count(*) AS rate
FROM internal.effects f
LEFT JOIN (SELECT DISTINCT action_id FROM events WHERE kind = 'compensation_verified') v USING (action_id)
WHERE internal.moment(f.ts_us) >= since::TIMESTAMP AND internal.moment(f.ts_us) < until::TIMESTAMP
GROUP BY ALL ORDER BY ALL

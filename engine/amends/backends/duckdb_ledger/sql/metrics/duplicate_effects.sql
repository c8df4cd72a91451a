WITH twins AS (SELECT of_action, count(*) AS twins FROM internal.planned WHERE action_kind = 'duplicate' GROUP BY of_action),
facts AS (
  SELECT f.ts_us, f.tenant, f.workflow, f.capability, f.system, f.provider, f.policy_version,
    (e.action_id IS NOT NULL)::BIGINT AS effects, coalesce(t.twins, 0) AS duplicates
  FROM internal.forward f
  LEFT JOIN internal.effects e USING (action_id)
  LEFT JOIN twins t ON t.of_action = f.action_id
  WHERE f.action_kind = 'do' AND (e.action_id IS NOT NULL OR t.of_action IS NOT NULL)
  UNION ALL
  SELECT f.ts_us, f.tenant, f.workflow, f.capability, f.system, f.provider, f.policy_version, 0, 1
  FROM internal.forward f
  WHERE f.action_kind = 'duplicate'
    AND f.of_action NOT IN (SELECT action_id FROM internal.planned WHERE action_kind = 'do')
)
SELECT internal.moment(ts_us)::DATE AS day, tenant, workflow, capability, system, provider, policy_version,
  sum(effects)::BIGINT AS effects, sum(duplicates)::BIGINT AS duplicates,
  sum(duplicates) / nullif(sum(effects), 0) AS rate
FROM facts
WHERE internal.moment(ts_us) >= since::TIMESTAMP AND internal.moment(ts_us) < until::TIMESTAMP
GROUP BY ALL ORDER BY ALL

WITH sends AS (
  SELECT u.of_action AS action_id, count(*) AS sends
  FROM internal.planned u JOIN events i ON i.action_id = u.action_id AND i.kind = 'intent_recorded'
  WHERE u.action_kind = 'undo' GROUP BY u.of_action
)
SELECT internal.moment(c.ts_us)::DATE AS day, c.tenant, c.workflow, c.capability, c.system, c.provider,
  c.policy_version, count(*) AS compensations, sum(s.sends)::BIGINT AS undo_sends,
  sum(s.sends - 1)::BIGINT AS retries, max(s.sends) AS most_sends, sum(s.sends - 1) / count(*) AS retries_each
FROM internal.undone c JOIN sends s USING (action_id)
WHERE internal.moment(c.ts_us) >= since::TIMESTAMP AND internal.moment(c.ts_us) < until::TIMESTAMP
GROUP BY ALL ORDER BY ALL

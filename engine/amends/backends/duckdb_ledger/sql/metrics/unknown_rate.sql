SELECT internal.moment(sent_us)::DATE AS day, tenant, workflow, capability, system, provider, policy_version,
  count(*) AS intents, count(*) FILTER (ever_unknown) AS ever_unknown, count(*) FILTER (unanswered) AS unanswered,
  count(*) FILTER (ever_unknown) / count(*) AS rate
FROM internal.attempts
WHERE action_kind = 'do'
  AND internal.moment(sent_us) >= since::TIMESTAMP AND internal.moment(sent_us) < until::TIMESTAMP
GROUP BY ALL ORDER BY ALL

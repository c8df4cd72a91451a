SELECT internal.moment(ts_us)::DATE AS day, tenant, workflow, capability, system, provider, policy_version,
  count(*) AS started, count(*) FILTER (state = 'verified') AS verified,
  count(*) FILTER (state = 'by_person') AS by_person, count(*) FILTER (state = 'parked') AS parked,
  count(*) FILTER (state = 'accepted') AS accepted, count(*) FILTER (state = 'open') AS open,
  count(*) FILTER (state = 'verified') / nullif(count(*) FILTER (state <> 'open'), 0) AS rate
FROM internal.undone
WHERE internal.moment(ts_us) >= since::TIMESTAMP AND internal.moment(ts_us) < until::TIMESTAMP
GROUP BY ALL ORDER BY ALL

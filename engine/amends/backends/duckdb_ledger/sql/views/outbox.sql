WITH queued AS (
  SELECT action_id, min(seq) AS seq, min(ts_us) AS queued_us, arg_max(payload, seq) AS payload
  FROM events WHERE kind = 'action_queued' GROUP BY action_id
),
left_ AS (
  SELECT q.action_id, min(e.ts_us) AS left_us, arg_min(e.kind, e.seq) AS kind
  FROM queued q JOIN events e ON e.action_id = q.action_id AND e.seq > q.seq
  WHERE e.kind IN ('intent_recorded', 'action_withdrawn', 'action_denied') GROUP BY q.action_id
)
SELECT p.run_id, p.action_id, p.tenant, p.workflow, p.capability, p.system, p.provider, s.policy_version, p.resource,
  internal.text(q.payload, '$.mode') AS release_mode, internal.text(q.payload, '$.content_digest') AS content_digest,
  s.status,
  CASE l.kind WHEN 'intent_recorded' THEN 'released' WHEN 'action_withdrawn' THEN 'withdrawn'
    WHEN 'action_denied' THEN 'denied' ELSE 'waiting' END AS state,
  internal.moment(q.queued_us) AS queued, internal.moment(l.left_us) AS departed,
  internal.seconds(q.queued_us, coalesce(l.left_us, internal.as_of_us())) AS waited_seconds
FROM queued q
JOIN internal.planned p USING (action_id)
JOIN internal.standing s USING (action_id)
LEFT JOIN left_ l USING (action_id)

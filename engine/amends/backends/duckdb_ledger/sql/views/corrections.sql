SELECT p.run_id, p.action_id, p.tenant, p.workflow, p.capability, p.system, p.provider, p.place, p.revision, p.covers,
  s.status, s.outcome, s.attempts, coalesce(o.provider_reference, '') AS provider_reference,
  internal.json(e.payload, '$.args') AS args, internal.moment(p.ts_us) AS created, internal.moment(o.posted_us) AS posted
FROM internal.planned p
JOIN internal.standing s USING (action_id)
JOIN events e ON e.seq = p.seq
LEFT JOIN (
  SELECT action_id, min(ts_us) FILTER (outcome = 'succeeded') AS posted_us,
    arg_max(internal.text(payload, '$.reference'), seq) FILTER (internal.text(payload, '$.reference') <> '')
      AS provider_reference
  FROM events WHERE kind = 'outcome_recorded' GROUP BY action_id
) o USING (action_id)
WHERE p.action_kind = 'correct'

SELECT p.run_id, p.action_id, p.run_seq, p.action_kind, p.of_action, p.rung, p.tenant, p.workflow, p.capability,
  p.system, p.provider, p.adapter, p.environment, p.slot, p.label, p.generation, s.attempts, s.status, s.outcome,
  p.resource, p.args_digest AS request_digest, coalesce(o.provider_reference, '') AS provider_reference,
  p.effect_kind, o.effect, p.reversibility, p.audience, p.compensation, coalesce(u.undo_action, '') AS undo_action,
  coalesce(o.error_code, '') AS last_error_code, coalesce(o.error_message, '') AS last_error_message,
  coalesce(k.parked_cause, '') AS parked_cause, p.required, p.depends_on, s.policy_version, s.decision_id,
  internal.moment(p.ts_us) AS created, internal.moment(i.sent_us) AS sent, internal.moment(s.updated_us) AS updated
FROM internal.planned p
JOIN internal.standing s USING (action_id)
LEFT JOIN (
  SELECT action_id, min(ts_us) AS sent_us FROM events WHERE kind = 'intent_recorded' GROUP BY action_id
) i USING (action_id)
LEFT JOIN (
  SELECT action_id,
    arg_max(internal.text(payload, '$.reference'), seq) FILTER (internal.text(payload, '$.reference') <> '')
      AS provider_reference,
    arg_max(internal.json(payload, '$.effect'), seq) FILTER (internal.json(payload, '$.effect')::VARCHAR <> '{}')
      AS effect,
    arg_max(internal.text(payload, '$.error.code'), seq) AS error_code,
    arg_max(internal.text(payload, '$.error.message'), seq) AS error_message
  FROM events WHERE kind = 'outcome_recorded' GROUP BY action_id
) o USING (action_id)
LEFT JOIN (
  SELECT action_id, arg_max(internal.text(payload, '$.undo'), seq) AS undo_action
  FROM events WHERE kind = 'compensation_started' GROUP BY action_id
) u USING (action_id)
LEFT JOIN (
  SELECT action_id,
    CASE WHEN arg_max(status, seq) = 'needs_human'
      THEN arg_max(internal.text(payload, '$.cause'), seq) FILTER (kind = 'action_parked') END AS parked_cause
  FROM events
  WHERE action_id IN (SELECT action_id FROM events WHERE kind = 'action_parked') AND kind <> 'evidence.late'
  GROUP BY action_id
) k USING (action_id)

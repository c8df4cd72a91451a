WITH steps AS (
  SELECT action_id, seq, ts_us, kind, status, payload FROM events
  WHERE kind IN ('compensation_started', 'compensation_verified', 'effect_reappeared', 'late_check_done')
),
folded AS (
  SELECT action_id, min(ts_us) FILTER (kind = 'compensation_started') AS started_us,
    list(internal.text(payload, '$.rung') ORDER BY seq) FILTER (kind = 'compensation_started') AS rungs,
    max(ts_us) FILTER (kind = 'compensation_verified') AS verified_us,
    arg_max(internal.text(payload, '$.how'), seq) FILTER (kind = 'compensation_verified') AS how,
    count(*) FILTER (kind = 'effect_reappeared') AS reappeared,
    arg_max(CASE kind WHEN 'effect_reappeared' THEN 'applied' ELSE internal.text(payload, '$.seen') END, seq)
      FILTER (kind IN ('late_check_done', 'effect_reappeared')) AS second_look
  FROM steps GROUP BY action_id
  HAVING count(*) FILTER (kind IN ('compensation_started', 'compensation_verified')) > 0
),
sends AS (
  SELECT u.of_action AS action_id, count(DISTINCT u.action_id) AS undo_actions, count(i.seq) AS undo_sends
  FROM internal.planned u
  LEFT JOIN events i ON i.action_id = u.action_id AND i.kind = 'intent_recorded'
  WHERE u.action_kind = 'undo' GROUP BY u.of_action
)
SELECT p.run_id, p.action_id, p.tenant, p.workflow, p.capability, p.system, p.provider, s.policy_version, s.status,
  coalesce(f.rungs, []) AS rungs, coalesce(n.undo_actions, 0) AS undo_actions, coalesce(n.undo_sends, 0) AS undo_sends,
  f.how, f.reappeared, f.second_look, internal.moment(f.started_us) AS started,
  CASE WHEN s.status = 'compensated' THEN internal.moment(f.verified_us) END AS verified
FROM folded f
JOIN internal.planned p USING (action_id)
JOIN internal.standing s USING (action_id)
LEFT JOIN sends n USING (action_id)

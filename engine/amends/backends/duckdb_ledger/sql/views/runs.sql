SELECT o.run_id, o.tenant, o.workflow, internal.text(o.payload, '$.run_key') AS run_key,
  internal.text(o.payload, '$.agent') AS agent, internal.text(o.payload, '$.initiator') AS initiator,
  internal.text(o.payload, '$.owner') AS owner, internal.text(o.payload, '$.intent_ref') AS intent_ref,
  internal.text(o.payload, '$.check') AS success_check, internal.text(o.payload, '$.caused_by') AS caused_by,
  coalesce(m.status, 'open') AS status, coalesce(m.reason, '') AS reason, a.epoch,
  coalesce(c.answer, '') AS check_answer, coalesce(p.actions, 0) AS actions, a.events,
  m.needs_human_us IS NOT NULL AS entered_needs_human, o.ts AS opened,
  internal.moment(coalesce(m.moved_us, o.ts_us)) AS moved, internal.moment(a.updated_us) AS updated
FROM events o
JOIN (
  SELECT run_id, max(epoch) AS epoch, count(*) AS events, max(ts_us) AS updated_us FROM events GROUP BY run_id
) a USING (run_id)
LEFT JOIN (
  SELECT run_id, arg_max(status, seq) AS status, arg_max(internal.text(payload, '$.reason'), seq) AS reason,
    max(ts_us) AS moved_us, min(ts_us) FILTER (status = 'needs_human') AS needs_human_us
  FROM events WHERE kind = 'run_moved' GROUP BY run_id
) m USING (run_id)
LEFT JOIN (
  SELECT run_id, arg_max(internal.text(payload, '$.answer'), seq) AS answer
  FROM events WHERE kind = 'check_answered' GROUP BY run_id
) c USING (run_id)
LEFT JOIN (SELECT run_id, count(*) AS actions FROM internal.planned GROUP BY run_id) p USING (run_id)
WHERE o.kind = 'run_opened'

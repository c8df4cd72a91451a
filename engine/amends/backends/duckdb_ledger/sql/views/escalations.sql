WITH steps AS (
  SELECT internal.text(payload, '$.escalation_id') AS escalation_id, seq, ts_us, kind, payload FROM events
  WHERE kind IN ('escalation_notified', 'escalation_acknowledged', 'escalation_resolved')
),
folded AS (
  SELECT escalation_id, count(*) FILTER (kind = 'escalation_notified') AS deliveries,
    bool_or(internal.text(payload, '$.delivered') = 'true') FILTER (kind = 'escalation_notified') AS delivered,
    max(ts_us) FILTER (kind = 'escalation_notified') AS notified_us,
    min(ts_us) FILTER (kind = 'escalation_acknowledged') AS seen_us,
    arg_max(internal.text(payload, '$.by'), seq) FILTER (kind = 'escalation_acknowledged') AS seen_by,
    min(ts_us) FILTER (kind = 'escalation_resolved') AS resolved_us,
    arg_max(payload, seq) FILTER (kind = 'escalation_resolved') AS answer
  FROM steps GROUP BY escalation_id
)
SELECT o.escalation_id, o.run_id, o.action_id, o.tenant, o.workflow, o.capability, o.system, o.provider,
  internal.text(o.payload, '$.cause') AS cause,
  CASE WHEN f.resolved_us IS NOT NULL THEN 'resolved' WHEN f.seen_us IS NOT NULL THEN 'acknowledged' ELSE 'open' END
    AS status,
  internal.text(o.payload, '$.queue') AS queue, internal.text(o.payload, '$.owner') AS owner,
  internal.text(o.payload, '$.known') AS known, internal.text(o.payload, '$.in_doubt') AS in_doubt,
  internal.text(o.payload, '$.proposed') AS proposed, internal.texts(o.payload, '$.choices') AS choices,
  coalesce(f.deliveries, 0) AS deliveries, coalesce(f.delivered, false) AS delivered,
  coalesce(f.seen_by, '') AS acknowledged_by, coalesce(internal.text(f.answer, '$.choice'), '') AS choice,
  coalesce(internal.text(f.answer, '$.by'), '') AS resolved_by,
  coalesce(internal.text(f.answer, '$.channel'), '') AS channel,
  coalesce(internal.text(f.answer, '$.comment'), '') AS comment, o.ts AS opened,
  internal.moment(internal.text(o.payload, '$.deadline_us')) AS deadline, internal.moment(f.notified_us) AS notified,
  internal.moment(f.seen_us) AS acknowledged, internal.moment(f.resolved_us) AS resolved
FROM (SELECT *, internal.text(payload, '$.escalation_id') AS escalation_id FROM events WHERE kind = 'escalation_opened') o
LEFT JOIN folded f USING (escalation_id)

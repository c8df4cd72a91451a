WITH items AS (
  SELECT 'outbox' AS queue, action_id AS item, min(seq) AS seq FROM events WHERE kind = 'action_queued' GROUP BY action_id
  UNION ALL
  SELECT 'approvals', internal.text(payload, '$.approval_id'), min(seq) FROM events
  WHERE kind = 'approval_asked' GROUP BY 1, 2
  UNION ALL
  SELECT 'escalations', internal.text(payload, '$.escalation_id'), min(seq) FROM events
  WHERE kind = 'escalation_opened' GROUP BY 1, 2
),
exits AS (
  SELECT 'outbox' AS queue, action_id AS item, seq, ts_us FROM events
  WHERE kind IN ('intent_recorded', 'action_withdrawn', 'action_denied')
  UNION ALL
  SELECT 'approvals', internal.text(payload, '$.approval_id'), seq, ts_us FROM events
  WHERE kind IN ('approval_given', 'approval_closed')
  UNION ALL
  SELECT 'escalations', internal.text(payload, '$.escalation_id'), seq, ts_us FROM events
  WHERE kind = 'escalation_resolved'
),
waits AS (
  SELECT i.queue, i.seq, min(x.ts_us) AS left_us
  FROM items i LEFT JOIN exits x ON x.queue = i.queue AND x.item = i.item AND x.seq > i.seq GROUP BY i.queue, i.seq
)
SELECT e.ts::DATE AS day, e.tenant, e.workflow, e.capability, e.system, e.provider, e.policy_version, w.queue,
  count(*) FILTER (w.left_us IS NULL) AS waiting,
  median(internal.seconds(e.ts_us, internal.as_of_us())) FILTER (w.left_us IS NULL) AS median_seconds,
  max(internal.seconds(e.ts_us, internal.as_of_us())) FILTER (w.left_us IS NULL) AS oldest_seconds,
  count(w.left_us) AS departed,
  median(internal.seconds(e.ts_us, w.left_us)) FILTER (w.left_us IS NOT NULL) AS median_wait_seconds
FROM waits w JOIN events e ON e.seq = w.seq
WHERE e.ts >= since::TIMESTAMP AND e.ts < until::TIMESTAMP
GROUP BY ALL ORDER BY ALL

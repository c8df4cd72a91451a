WITH steps AS (
  SELECT internal.text(payload, '$.approval_id') AS approval_id, seq, ts_us, kind, payload, run_id, action_id, tenant,
    workflow, capability, system, provider
  FROM events WHERE kind IN ('approval_asked', 'approval_given', 'approval_closed', 'intent_recorded')
),
folded AS (
  SELECT approval_id, arg_max(kind, seq) AS last_kind, arg_max(payload, seq) AS last_payload,
    list(internal.text(payload, '$.by') ORDER BY seq) FILTER (kind = 'approval_given') AS approvers,
    flatten(list(internal.texts(payload, '$.roles')) FILTER (kind = 'approval_given')) AS held_roles,
    max(TRY_CAST(internal.text(payload, '$.tier') AS BIGINT)) FILTER (kind = 'approval_given') AS granted_tier,
    min(ts_us) FILTER (kind = 'approval_given') AS given_us, min(ts_us) FILTER (kind = 'approval_closed') AS closed_us,
    min(ts_us) FILTER (kind = 'intent_recorded') AS used_us,
    arg_max(payload, seq) FILTER (kind IN ('approval_given', 'approval_closed')) AS answer
  FROM steps WHERE approval_id <> '' GROUP BY approval_id
)
SELECT a.approval_id, a.run_id, a.action_id, a.tenant, a.workflow, a.capability, a.system, a.provider,
  internal.text(a.payload, '$.phase') AS phase,
  CASE f.last_kind WHEN 'approval_asked' THEN 'pending'
    WHEN 'approval_given' THEN if(internal.approved(a.payload, f.approvers, f.held_roles), 'approved', 'pending')
    WHEN 'intent_recorded' THEN 'consumed' ELSE internal.text(f.last_payload, '$.how') END AS status,
  TRY_CAST(internal.text(a.payload, '$.tier') AS BIGINT) AS tier, internal.texts(a.payload, '$.roles') AS roles,
  internal.texts(a.payload, '$.reasons') AS reasons, internal.text(a.payload, '$.digest') AS shown_digest,
  coalesce(f.approvers, []) AS approvers, coalesce(f.granted_tier, 0) AS granted_tier,
  coalesce(internal.text(f.answer, '$.by'), '') AS answered_by,
  coalesce(internal.text(f.answer, '$.channel'), '') AS channel,
  coalesce(internal.text(f.answer, '$.comment'), '') AS comment, a.ts AS asked,
  internal.moment(internal.text(a.payload, '$.expires_us')) AS expires, internal.moment(f.given_us) AS given,
  internal.moment(f.closed_us) AS closed, internal.moment(f.used_us) AS used
FROM (SELECT *, internal.text(payload, '$.approval_id') AS approval_id FROM events WHERE kind = 'approval_asked') a
JOIN folded f USING (approval_id)

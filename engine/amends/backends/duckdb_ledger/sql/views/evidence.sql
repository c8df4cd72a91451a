SELECT seq, ts, run_id, action_id, attempt, kind AS event_kind, tenant, workflow, capability, system, provider,
  CASE WHEN kind IN ('outcome_recorded', 'evidence.late') THEN internal.text(payload, '$.evidence.source')
    WHEN kind = 'compensation_verified' AND internal.text(payload, '$.how') = 'person' THEN 'person'
    ELSE 'probe' END AS source,
  internal.text(payload, '$.evidence.strength') AS strength,
  CASE WHEN kind IN ('outcome_recorded', 'evidence.late') THEN internal.text(payload, '$.outcome') END AS says,
  internal.text(payload, '$.observation.seen') AS seen, internal.text(payload, '$.purpose') AS purpose,
  internal.text(payload, '$.evidence.code') AS code,
  coalesce(internal.text(payload, '$.evidence.detail'), internal.text(payload, '$.observation.detail')) AS detail,
  internal.text(payload, '$.evidence.by') AS person,
  coalesce(internal.text(payload, '$.reference'), internal.text(payload, '$.observation.reference'))
    AS provider_reference
FROM events
WHERE kind IN ('outcome_recorded', 'evidence.late', 'probe_answered', 'compensation_verified', 'effect_reappeared')

SELECT seq, ts, run_id, action_id, tenant, workflow, capability, system, provider,
  internal.text(payload, '$.decision.decision_id') AS decision_id, internal.text(payload, '$.phase') AS phase,
  internal.text(payload, '$.decision.verdict') AS verdict,
  internal.text(payload, '$.decision.action') AS policy_action,
  TRY_CAST(internal.text(payload, '$.decision.tier') AS BIGINT) AS tier,
  internal.texts(payload, '$.decision.policy_ids') AS policy_ids,
  internal.text(payload, '$.decision.policy_version') AS policy_version,
  internal.text(payload, '$.decision.effective_digest') AS effective_digest,
  internal.text(payload, '$.decision.code') AS code, internal.texts(payload, '$.decision.reasons') AS reasons,
  internal.texts(payload, '$.decision.roles') AS roles, internal.text(payload, '$.decision.principal') AS principal,
  internal.text(payload, '$.decision.resource') AS resource
FROM events WHERE kind = 'decision_recorded'

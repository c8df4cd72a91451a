SELECT seq, ts, run_id, action_id, tenant, workflow, capability, system, provider, status, outcome, epoch,
  internal.text(payload, '$.decision') AS decision, internal.text(payload, '$.reason') AS reason,
  internal.json(payload, '$.facts') AS facts, internal.moment(internal.text(payload, '$.due_us')) AS due
FROM events WHERE kind = 'recovery_decided'

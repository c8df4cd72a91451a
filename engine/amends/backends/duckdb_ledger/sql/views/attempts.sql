SELECT a.run_id, a.action_id, a.attempt, a.seq, a.action_kind, a.tenant, a.workflow, a.capability, a.system,
  a.provider, a.slot, a.generation, a.epoch, a.policy_version, a.decision_id,
  internal.text(i.payload, '$.idempotency_key') AS idempotency_key,
  internal.text(i.payload, '$.approval_id') AS approval_id, a.outcome, a.ever_unknown,
  coalesce(internal.text(o.payload, '$.error.code'), '') AS error_code,
  internal.moment(a.sent_us) AS sent, internal.moment(internal.text(i.payload, '$.deadline_us')) AS deadline,
  internal.moment(a.answered_us) AS answered, internal.moment(a.unknown_us) AS first_unknown,
  internal.moment(a.resolved_us) AS resolved, internal.seconds(a.sent_us, a.answered_us) AS answer_seconds
FROM internal.attempts a
JOIN events i ON i.seq = a.seq
LEFT JOIN events o ON o.seq = a.outcome_seq

-- Fills internal.planned from the events after $1.
INSERT INTO internal.planned
SELECT seq, ts_us, run_id, run_seq, action_id, tenant, workflow, capability, system, provider, slot, generation,
  coalesce(internal.text(payload, '$.action_kind'), 'unreadable'), coalesce(internal.text(payload, '$.of'), ''),
  coalesce(internal.text(payload, '$.rung'), ''), internal.text(payload, '$.label'),
  internal.text(payload, '$.adapter'), internal.text(payload, '$.environment'), internal.text(payload, '$.resource'),
  internal.text(payload, '$.args_digest'), TRY_CAST(internal.text(payload, '$.required') AS BOOLEAN),
  internal.texts(payload, '$.depends_on'), internal.text(payload, '$.place'),
  TRY_CAST(internal.text(payload, '$.revision') AS BIGINT), internal.texts(payload, '$.covers'),
  internal.text(payload, '$.contract.effect.kind'), internal.text(payload, '$.contract.reversibility'),
  internal.text(payload, '$.contract.readers.audience'), internal.text(payload, '$.contract.compensation[*].name')
FROM events WHERE kind = 'action_planned' AND seq > $1 ORDER BY seq;

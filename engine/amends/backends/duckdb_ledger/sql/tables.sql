-- The mirror. `events` holds every event of the journal under the same `seq`; no keys, no indexes.
CREATE TABLE events (
  seq BIGINT, event_id VARCHAR, ts_us BIGINT, run_id VARCHAR, run_seq BIGINT, action_id VARCHAR, slot VARCHAR,
  generation BIGINT, attempt BIGINT, epoch BIGINT, kind VARCHAR, status VARCHAR, outcome VARCHAR, capability VARCHAR,
  system VARCHAR, provider VARCHAR, tenant VARCHAR, workflow VARCHAR, policy_version VARCHAR, decision_id VARCHAR,
  payload VARCHAR, digest VARCHAR, prev_hash VARCHAR, hash VARCHAR,
  -- A corrupt time (outside the years 1970 to 9999) is no reason for every query to fail.
  ts TIMESTAMP GENERATED ALWAYS AS
    (CASE WHEN ts_us BETWEEN 0 AND 253402300799999999 THEN make_timestamp(ts_us) END) VIRTUAL
);

-- What was found wrong with an event when it was mirrored; `seq` is the event's.
CREATE TABLE problems (seq BIGINT, run_id VARCHAR, problem VARCHAR);

CREATE SCHEMA internal;

-- One row: which journal this mirrors, how far, and how many events it holds.
CREATE TABLE internal.mirror (
  table_version BIGINT, sql_digest VARCHAR, journal_generation VARCHAR, max_seq BIGINT, max_hash VARCHAR, events BIGINT
);

-- Sealed files of which not all could be read when this ledger was made, and how many of their events it lacks.
CREATE TABLE internal.lacking (file VARCHAR, events BIGINT, problem VARCHAR);

-- What `action_planned` says, taken out of its large payload once, when it is mirrored.
CREATE TABLE internal.planned (
  seq BIGINT, ts_us BIGINT, run_id VARCHAR, run_seq BIGINT, action_id VARCHAR, tenant VARCHAR, workflow VARCHAR,
  capability VARCHAR, system VARCHAR, provider VARCHAR, slot VARCHAR, generation BIGINT,
  action_kind VARCHAR, of_action VARCHAR, rung VARCHAR, label VARCHAR, adapter VARCHAR, environment VARCHAR,
  resource VARCHAR, args_digest VARCHAR, required BOOLEAN, depends_on VARCHAR[], place VARCHAR, revision BIGINT,
  covers VARCHAR[], effect_kind VARCHAR, reversibility VARCHAR, audience VARCHAR, compensation VARCHAR[]
);

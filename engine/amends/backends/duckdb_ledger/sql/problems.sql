-- Reports what is wrong with the events after $1, beyond what their own digest shows.
INSERT INTO problems
SELECT seq, run_id, 'payload is not JSON' FROM events WHERE seq > $1 AND NOT json_valid(payload)
UNION ALL
SELECT seq, run_id, concat('kind is `', kind, '`, its payload says `', internal.text(payload, '$.kind'), '`')
FROM events WHERE seq > $1 AND json_valid(payload) AND internal.text(payload, '$.kind') IS DISTINCT FROM kind
UNION ALL
SELECT n.seq, n.run_id, 'does not chain to the event before it in its run'
FROM (SELECT seq, run_id, run_seq, prev_hash FROM events WHERE seq > $1) n
LEFT JOIN (SELECT run_id, run_seq, hash FROM events) p ON p.run_id = n.run_id AND p.run_seq = n.run_seq - 1
WHERE n.prev_hash IS DISTINCT FROM CASE WHEN n.run_seq = 1 THEN repeat('0', 64) ELSE p.hash END;

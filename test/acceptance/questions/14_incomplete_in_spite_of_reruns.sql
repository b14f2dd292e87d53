-- On which nights did a customer not deliver everything, even after the reruns?
SELECT t.run_date, t.customer_id, arg_max(t.reason, r.sequence) AS reason
FROM ops.tasks AS t JOIN ops.runs AS r USING (run_id)
GROUP BY ALL HAVING arg_max(t.outcome, r.sequence) <> 'succeeded' ORDER BY ALL
-- Answer:
-- 2026-11-24 | cleo | PARTIAL
-- 2026-11-28 | dora | BLOCKED_USER
-- 2026-11-29 | dora | BLOCKED_USER
-- 2026-11-30 | cleo | PARTIAL
-- 2026-11-30 | dora | BLOCKED_USER

-- What did reruns mend?
SELECT r.run_date, t.customer_id, t.outcome FROM ops.runs AS r JOIN ops.tasks AS t USING (run_id)
WHERE r.parent IS NOT NULL ORDER BY ALL
-- Answer:
-- 2026-11-23 | ben | succeeded

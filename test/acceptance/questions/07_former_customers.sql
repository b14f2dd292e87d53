-- Which customers have left, when did we last ask for them, and how many of their records are still here?
SELECT h.customer_id, max(t.run_date) AS last_seen, count(DISTINCT h.record_id) AS records
FROM history.other_records AS h JOIN ops.tasks AS t USING (customer_id)
WHERE h.ended_by = 'not requested' GROUP BY ALL ORDER BY ALL
-- Answer:
-- eva | 2026-11-26 | 2

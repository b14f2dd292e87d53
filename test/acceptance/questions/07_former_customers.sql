-- Which customers have left, when did we last ask for them, and how many of their records are still here?
SELECT c.customer_id, c.last_seen, count(r.record_id) AS records
FROM customers AS c LEFT JOIN other_records_latest AS r ON r.customer_id = c.customer_id
WHERE NOT c.is_current GROUP BY ALL ORDER BY ALL
-- Answer:
-- eva | 2026-11-26 | 2

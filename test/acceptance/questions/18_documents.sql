-- How many documents does each customer have, and are all of them here?
SELECT customer_id, run_date, count(*) AS documents, count(path) AS downloaded
FROM ops.documents GROUP BY ALL ORDER BY ALL
-- Answer:
-- fay | 2026-11-29 | 2 | 2
-- fay | 2026-11-30 | 2 | 2

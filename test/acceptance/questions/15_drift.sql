-- Which values did not fit their columns, since when, and for how many customers?
SELECT misfits, min(run_date) AS since, count(DISTINCT customer_id) AS customers
FROM nights.customer_profiles WHERE misfits IS NOT NULL GROUP BY misfits ORDER BY misfits
-- Answer:
-- gender: expected VARCHAR, got number | 2026-11-25 | 1

-- Which fields come that no column holds, from whom, and since when?
SELECT json_keys(extra) AS fields, customer_id, min(run_date) AS since
FROM nights.customer_profiles WHERE extra IS NOT NULL GROUP BY ALL ORDER BY ALL
-- Answer:
-- gender, loyalty | dora | 2026-11-25

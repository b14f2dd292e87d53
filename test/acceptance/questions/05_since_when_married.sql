-- Since when is each customer married?
SELECT customer_id, valid_from FROM history.customer_profiles
WHERE civil_status = 'married' AND valid_to IS NULL ORDER BY ALL
-- Answer:
-- ana | 2026-11-22

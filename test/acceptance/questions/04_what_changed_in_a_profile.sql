-- Which profiles changed over all ten nights, and in what?
SELECT customer_id, changed_columns FROM changes('2026-11-21', '2026-11-30')
WHERE table_name = 'customer_profiles' AND change = 'changed' ORDER BY ALL
-- Answer:
-- ana | civil_status
-- ben | emails
-- dora | gender

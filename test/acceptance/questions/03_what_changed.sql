-- What changed from the first night to the second?
SELECT table_name, change, customer_id, changed_columns FROM changes('2026-11-21', '2026-11-22') ORDER BY ALL
-- Answer:
-- customer_profiles | changed | ana | civil_status
-- other_records | added | ana | null
-- other_records | gone | ana | null

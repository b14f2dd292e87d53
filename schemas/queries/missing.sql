-- Who is missing and why: current customers whose data is not of the newest run.
SELECT customer_id, engine_reference, feature, outcome, reason, who_acts, fresh_date, age_days
FROM coverage_current
WHERE is_current_customer IS NOT FALSE AND (outcome <> 'succeeded' OR age_days IS NULL OR age_days > 0)
ORDER BY who_acts, reason, customer_id, engine_reference, feature

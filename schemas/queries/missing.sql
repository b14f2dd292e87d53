-- Who is missing and why: customers whose data is not of their newest run.
SELECT customer_id, engine_reference, feature, outcome, reason, who_acts, fresh_date, age_days
FROM coverage
WHERE outcome <> 'succeeded' OR fresh_date IS NULL OR fresh_date < run_date
ORDER BY who_acts, reason, customer_id, engine_reference, feature

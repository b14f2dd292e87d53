-- Products counted by the service against records delivered, where they differ in the newest outcome.
SELECT customer_id, engine_reference, feature, counted, records, counted - records AS missing, outcome, reason, run_id
FROM coverage
WHERE counted <> coalesce(records, 0)
ORDER BY missing DESC NULLS FIRST, customer_id, engine_reference, feature

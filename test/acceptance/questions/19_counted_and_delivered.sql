-- Did the service count anything that did not arrive, on any night?
SELECT run_date, customer_id, feature, counted, records FROM ops.coverage
WHERE counted > coalesce(records, 0) ORDER BY ALL
-- Answer:
-- 2026-11-30 | fay | customer_information_read | 1 | 0

-- Which records were rejected, and where did they break their schema?
SELECT run_date, customer_id, sub_family, reason, path FROM ops.rejected_records ORDER BY ALL
-- Answer:
-- 2026-11-30 | fay | customer_information:user_profile | expected list, got text | data.customer_information[0].emails

-- Families of records without a table of their own, which `nightjar infer` drafts schemas for.
SELECT product, sub_family, count(*) AS records, count(DISTINCT customer_id) AS customers,
  min(run_date) AS first_seen, max(run_date) AS last_seen
FROM nights.other_records
GROUP BY ALL
ORDER BY records DESC, product, sub_family

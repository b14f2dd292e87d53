-- Families without a table of their own, which `nightjar infer` drafts schemas for: their current records.
SELECT product, sub_family, count(DISTINCT o.record_id) AS records, count(DISTINCT o.customer_id) AS customers,
  min(n.run_date) AS first_seen, max(n.run_date) AS last_seen
FROM nights.other_records AS n LEFT JOIN other_records AS o USING (record_id, product, sub_family)
GROUP BY ALL
ORDER BY records DESC, product, sub_family

-- Freshness of each feature on each engine: customers, how old their data is, and who never had any.
SELECT engine_reference, feature, count(DISTINCT customer_id) AS customers,
  count(DISTINCT customer_id) FILTER (fresh_date >= run_date) AS fresh, max(age_days) AS oldest_days,
  count(DISTINCT customer_id) FILTER (fresh_date IS NULL) AS never
FROM coverage
GROUP BY ALL
ORDER BY ALL

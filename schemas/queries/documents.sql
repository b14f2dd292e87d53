-- Documents of each customer: how many, how many different ones were downloaded, and their size.
SELECT customer_id, engine_reference, media_type, count(*) AS listed,
  count(DISTINCT sha256) AS different, sum(bytes) FILTER (path IS NOT NULL) AS bytes, max(run_date) AS newest
FROM ops.documents
GROUP BY ALL
ORDER BY ALL

-- Documents in each customer's current results: how many, how many different ones were downloaded, their size.
WITH contents AS (
  SELECT customer_id, engine_reference, media_type, sha256, count(*) AS listed, max(bytes) AS bytes
  FROM documents
  GROUP BY ALL
)
SELECT customer_id, engine_reference, media_type, sum(listed)::BIGINT AS listed,
  count(sha256) AS different, sum(bytes)::BIGINT AS bytes
FROM contents
GROUP BY ALL
ORDER BY ALL

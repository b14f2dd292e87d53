-- What changed with the newest run: records added, changed, gone and rejected, by table and changed columns.
WITH newest AS (
  SELECT run_id, row_number() OVER (ORDER BY coalesce(sequence, 0) DESC, started_at DESC, run_id DESC) AS place
  FROM ops.runs
)
SELECT table_name, change, product, sub_family, changed_columns,
  count(*) AS records, count(DISTINCT customer_id) AS customers
FROM changes(
  coalesce((SELECT run_id FROM newest WHERE place = 2), '0001-01-01'),
  (SELECT run_id FROM newest WHERE place = 1)
)
GROUP BY ALL
ORDER BY ALL

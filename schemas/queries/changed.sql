-- What changed with the newest run: records added, changed, gone and rejected, by table and changed columns.
SELECT table_name, change, product, sub_family, changed_columns,
  count(*) AS records, count(DISTINCT customer_id) AS customers
FROM changes(
  (SELECT run_id FROM ops.runs ORDER BY coalesce(sequence, 0) DESC, started_at DESC, run_id DESC LIMIT 1 OFFSET 1),
  (SELECT run_id FROM ops.runs ORDER BY coalesce(sequence, 0) DESC, started_at DESC, run_id DESC LIMIT 1)
)
GROUP BY ALL
ORDER BY ALL

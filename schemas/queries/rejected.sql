-- Records that their schema rejected, each counted once, by family, reason and place, newest first.
SELECT product, sub_family, reason, regexp_replace(path, '\[\d+\]', '[]', 'g') AS place,
  count(DISTINCT record_id) AS records, count(DISTINCT customer_id) AS customers,
  arg_max(run_id, (coalesce(sequence, 0), started_at, run_id)) AS last_run_id
FROM ops.rejected_records JOIN ops.runs USING (run_id)
GROUP BY ALL
ORDER BY max((coalesce(sequence, 0), started_at, run_id)) DESC, records DESC, product, sub_family, reason, place

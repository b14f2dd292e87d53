-- Records that their schema rejected, by family, reason and place, newest first.
SELECT product, sub_family, reason, regexp_replace(path, '\[\d+\]', '[]', 'g') AS place,
  count(*) AS records, count(DISTINCT customer_id) AS customers, max(run_id) AS last_run_id
FROM ops.rejected_records
GROUP BY ALL
ORDER BY last_run_id DESC, records DESC, product, sub_family, reason, place

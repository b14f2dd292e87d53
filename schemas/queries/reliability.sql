-- Reliability of each engine by week: tasks, how many succeeded, and how long half of them took.
SELECT engine_reference, date_trunc('week', run_date)::DATE AS week, count(*) AS tasks,
  count(*) FILTER (outcome = 'succeeded') AS succeeded,
  round(100.0 * count(*) FILTER (outcome = 'succeeded') / count(*), 1) AS succeeded_percent,
  round(quantile_cont(epoch(closed_at) - epoch(started_at), 0.5)) AS half_within_seconds
FROM ops.tasks
WHERE engine_reference IS NOT NULL
GROUP BY ALL
ORDER BY engine_reference, week

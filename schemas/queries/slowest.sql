-- The twenty slowest tasks of the newest run, with their attempts and how they ended.
SELECT customer_id, engine_reference, round(epoch(closed_at) - epoch(started_at)) AS seconds,
  attempts, outcome, reason, task_id
FROM ops.tasks
WHERE closed_at IS NOT NULL AND started_at IS NOT NULL
  AND run_id = (SELECT run_id FROM ops.runs ORDER BY coalesce(sequence, 0) DESC, started_at DESC, run_id DESC LIMIT 1)
ORDER BY seconds DESC, task_id
LIMIT 20

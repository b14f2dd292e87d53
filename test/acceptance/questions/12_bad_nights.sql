-- Which nights did not end well, with how many tasks that need somebody?
SELECT run_date, exit_code, partial, failed, unfinished FROM ops.runs
WHERE exit_code <> 0 ORDER BY run_date
-- Answer:
-- 2026-11-23 | 4 | 0 | 0 | 1
-- 2026-11-24 | 3 | 1 | 0 | 0
-- 2026-11-28 | 3 | 0 | 1 | 0
-- 2026-11-29 | 3 | 0 | 1 | 0
-- 2026-11-30 | 3 | 1 | 1 | 0

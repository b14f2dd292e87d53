-- Former customers: no job asks for them any more, and their rows are still here.
SELECT customer_id, jobs, first_seen, last_seen, run_id
FROM customers
WHERE NOT is_current
ORDER BY last_seen DESC, customer_id

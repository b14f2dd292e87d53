-- Former customers: no job asks for them any more; the records that jobs asked for are in history.
SELECT customer_id, list_sort(list(DISTINCT job)) AS jobs, min(t.run_date) AS first_seen, max(t.run_date) AS last_seen
FROM ops.tasks AS t JOIN ops.runs USING (run_id)
WHERE customer_id IS NOT NULL AND customer_id NOT IN (SELECT customer_id FROM customers)
GROUP BY customer_id
ORDER BY last_seen DESC, customer_id

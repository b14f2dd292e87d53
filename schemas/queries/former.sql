-- Former customers: no job asks for them any more, and nothing of them is current; their records are in history.
SELECT customer_id, list_sort(list(DISTINCT job)) AS jobs, min(t.run_date) AS first_seen, max(t.run_date) AS last_seen
FROM ops.tasks AS t JOIN ops.runs USING (run_id)
WHERE customer_id IS NOT NULL AND customer_id NOT IN (SELECT customer_id FROM customers)
  AND NOT EXISTS (FROM coverage AS c WHERE c.customer_id = t.customer_id)
GROUP BY customer_id
ORDER BY last_seen DESC, customer_id

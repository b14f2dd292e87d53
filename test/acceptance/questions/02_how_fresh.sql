-- How old is the data of each customer we still have, at worst?
SELECT customer_id, max(DATE '2026-11-30' - fresh_date) AS days FROM coverage
GROUP BY customer_id ORDER BY days DESC, customer_id
-- Answer:
-- dora | 3
-- cleo | 1
-- ana | 0
-- ben | 0
-- fay | 0

-- How old is the data of each customer we still have, at worst?
SELECT customer_id, max(age_days) AS days FROM coverage_current
WHERE is_current_customer GROUP BY customer_id ORDER BY days DESC, customer_id
-- Answer:
-- dora | 3
-- cleo | 1
-- ana | 0
-- ben | 0
-- fay | 0

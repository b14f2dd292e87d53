-- How many accounts does each customer have now, and with how much money?
SELECT customer_id, count(*) AS accounts, sum((record ->> 'balance')::DECIMAL(18, 2)) AS balance
FROM other_records WHERE product = 'accounts'
GROUP BY customer_id ORDER BY customer_id
-- Answer:
-- ana | 2 | 220.00
-- ben | 1 | 50.00
-- cleo | 1 | 50.00
-- dora | 1 | 50.00
-- fay | 1 | 50.00

-- Which kinds of account were opened between the sixth and the seventh night?
SELECT customer_id, sub_family, count(*) FILTER (change = 'added') - count(*) FILTER (change = 'gone') AS more
FROM changes('2026-11-26', '2026-11-27') WHERE product = 'accounts'
GROUP BY ALL HAVING more > 0 ORDER BY ALL
-- Answer:
-- ana | account:savings | 1

-- Who came after the first night?
SELECT customer_id, first_seen FROM customers WHERE first_seen > DATE '2026-11-21' ORDER BY ALL
-- Answer:
-- fay | 2026-11-29

-- To which e-mail address do we write to each customer who is with us, and for whom is none known?
SELECT c.customer_id, e.email FROM customers AS c LEFT JOIN emails AS e USING (customer_id) ORDER BY ALL
-- Answer:
-- ana | ana@example.test
-- ben | null
-- cleo | cleo@example.test
-- dora | dora@example.test
-- fay | null

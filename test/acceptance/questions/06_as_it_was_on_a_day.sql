-- What did we know about Ana's civil status on the first day?
SELECT customer_id, civil_status FROM history.customer_profiles
WHERE customer_id = 'ana' AND valid_from <= DATE '2026-11-21'
  AND (valid_to IS NULL OR DATE '2026-11-21' < valid_to)
-- Answer:
-- ana | single

-- Whose data is not of the newest night, why, and who has to act?
SELECT customer_id, feature, reason, who_acts, fresh_date FROM coverage
WHERE fresh_date < DATE '2026-11-30'
ORDER BY ALL
-- Answer:
-- cleo | cards_read | FEATURE_FAILED | engineer | 2026-11-29
-- dora | accounts_read | BLOCKED_USER | customer | 2026-11-27
-- dora | cards_read | BLOCKED_USER | customer | 2026-11-27
-- dora | customer_information_read | BLOCKED_USER | customer | 2026-11-27

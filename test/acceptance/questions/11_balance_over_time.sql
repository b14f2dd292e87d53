-- How did the money in Ana's first account develop, night by night?
SELECT valid_from, (record ->> 'balance')::DECIMAL(18, 2) AS balance
FROM history.other_records
WHERE customer_id = 'ana' AND sub_family = 'account:checking' AND valid_from >= DATE '2026-11-28'
ORDER BY ALL
-- Answer:
-- 2026-11-28 | 108.00
-- 2026-11-29 | 109.00
-- 2026-11-30 | 110.00

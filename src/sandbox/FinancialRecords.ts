/**
 * Records of banks and brokers. The reference does not show their shapes: these are this service's own,
 * marked as such in every record, plausible enough to exercise whoever reads families without a schema.
 */
import { cifOf, dateOf, personOf } from "./Person.ts"
import { amountOf } from "./RecordFamily.ts"
import type { RecordBody, RecordContext, RecordFamily } from "./RecordFamily.ts"
import { seeded } from "./Seeded.ts"
import type { Draw } from "./Seeded.ts"

/** An IBAN whose check digits are right (ISO 7064, modulo 97). */
export const ibanOf = (draw: Draw): string => {
  const account = draw.digits(20)
  const check = 98n - (BigInt(`${account}142800`) % 97n)
  return `ES${String(check).padStart(2, "0")}${account}`
}

const holders = ({ seed, customer_id }: RecordContext) => {
  const person = personOf(seed, customer_id)
  return [{ name: `${person.name} ${person.surnames}`.trim(), role: "holder" }]
}

const movements = (draw: Draw, count: number) =>
  Array.from({ length: count }, (_, index) => ({
    position: index,
    value_date: dateOf(draw, 2026, 2026),
    amount: `${draw.chance(0.7) ? "-" : ""}${amountOf(draw, 1, 900)}`,
    concept: draw.pick(["Recibo luz", "Nómina", "Supermercado", "Transferencia", "Bizum, «gracias»"]),
  }))

const account = (context: RecordContext): RecordBody => ({
  iban: ibanOf(context.draw),
  alias: context.draw.pick(["Cuenta nómina", "Cuenta común", "Ahorro vacaciones"]),
  currency: "EUR",
  balance: amountOf(context.draw, 0, 42_000),
  opened_on: dateOf(context.draw, 2001, 2024),
  ...(context.detailed ? { holders: holders(context), transactions: movements(context.draw, 12) } : {}),
})

const card = ({ draw, detailed }: RecordContext): RecordBody => ({
  masked_pan: `•••• •••• •••• ${draw.digits(4)}`,
  brand: draw.pick(["visa", "mastercard"]),
  expires: `${draw.int(2027, 2031)}-${String(draw.int(1, 12)).padStart(2, "0")}`,
  credit_limit: amountOf(draw, 300, 6_000),
  currency: "EUR",
  ...(detailed ? { transactions: movements(draw, 8) } : {}),
})

const contractOf =
  (extra: (draw: Draw) => RecordBody) =>
  (context: RecordContext): RecordBody => ({
    contract_number: context.draw.digits(16),
    currency: "EUR",
    opened_on: dateOf(context.draw, 2008, 2025),
    ...extra(context.draw),
    ...(context.detailed ? { holders: holders(context), transactions: movements(context.draw, 6) } : {}),
  })

const borrowed = (draw: Draw): RecordBody => ({
  granted: amountOf(draw, 1_000, 250_000),
  outstanding: amountOf(draw, 0, 1_000),
  interest_rate: `${draw.int(0, 6)}.${draw.digits(3)}`,
})

const positioned = (draw: Draw): RecordBody => ({
  isin: `ES${draw.digits(10)}`,
  units: `${draw.int(1, 900)}.${draw.digits(4)}`,
  value: amountOf(draw, 10, 90_000),
})

const family = (
  product: string,
  kinds: RecordFamily["kinds"],
  usual: RecordFamily["usual"],
  make: RecordFamily["make"],
): RecordFamily => ({ product, kinds, usual, make })

export const financialFamilies = {
  accounts_read: family("accounts", ["account:checking", "account:savings"], [1, 4], account),
  cards_read: family(
    "cards",
    ["financial_card:debit", "financial_card:credit", "financial_card:prepaid", "financial_card:mixed"],
    [0, 3],
    card,
  ),
  deposits_read: family(
    "deposits",
    ["deposit:fixed_term"],
    [0, 2],
    contractOf((draw) => ({
      principal: amountOf(draw, 1_000, 60_000),
      matures_on: dateOf(draw, 2027, 2030),
    })),
  ),
  loans_read: family("loans", ["loan:mortgage", "loan:personal"], [0, 2], contractOf(borrowed)),
  credits_read: family("credits", ["credit:line"], [0, 1], contractOf(borrowed)),
  investment_accounts_read: family(
    "investment_accounts",
    ["investment_account:securities"],
    [0, 1],
    contractOf((draw) => ({ market_value: amountOf(draw, 0, 300_000) })),
  ),
  funds_read: family("funds", ["fund:mixed", "fund:equity"], [0, 3], contractOf(positioned)),
  stocks_read: family("stocks", ["stock:listed"], [0, 5], contractOf(positioned)),
  pensions_read: family("pensions", ["pension:individual_plan"], [0, 2], contractOf(positioned)),
  accounts_certificates: family(
    "accounts_certificates",
    ["account_certificate:ownership"],
    [1, 1],
    (context) => ({
      iban: ibanOf(seeded("certificate", context.seed, context.customer_id)),
      issued_on: dateOf(context.draw, 2026, 2026),
    }),
  ),
  direct_debits_read: family("direct_debits", ["direct_debit:recurring"], [0, 6], ({ draw }) => ({
    creditor: `Suministros ${draw.pick(["Norte", "Sur", "Levante"])} S.A.`,
    creditor_id: cifOf(draw),
    mandate: draw.digits(20),
    last_amount: amountOf(draw, 5, 300),
  })),
  source_contracts_read: family(
    "source_contracts",
    ["source_contract:service"],
    [1, 2],
    contractOf((draw) => ({
      tariff: draw.pick(["2.0TD", "Fibra 600", "Plan básico"]),
    })),
  ),
  credit_registry_data: family(
    "credit_registry_data",
    ["credit_registry_data:es_cirbe_detailed", "credit_registry_data:es_cirbe_aggregated"],
    [1, 2],
    ({ draw }) => ({
      period: `2026-${String(draw.int(1, 10)).padStart(2, "0")}`,
      total_risk: amountOf(draw, 0, 400_000),
      entities: draw.int(1, 5),
    }),
  ),
} satisfies Readonly<Record<string, RecordFamily>>

/**
 * Records of banks and brokers. The reference does not show their shapes: these are this service's own,
 * marked as such in every record. `schemas/readings` has a record schema for each of them.
 */
import { cifOf, dateOf, personOf } from "./Person.ts"
import { amountOf } from "./RecordFamily.ts"
import { countOccurrences, newestOccurrence, occurrenceDay, recurrenceOf } from "../engines/Recurrence.ts"
import type { RecordBody, RecordContext, RecordFamily } from "./RecordFamily.ts"
import { seeded } from "../state/Seeded.ts"
import type { Draw } from "../state/Seeded.ts"

/** An IBAN with valid check digits (ISO 7064, modulo 97). */
export const ibanOf = (draw: Draw): string => {
  const account = draw.digits(20)
  const check = 98n - (BigInt(`${account}142800`) % 97n)
  return `ES${String(check).padStart(2, "0")}${account}`
}

const holders = ({ seed, customer_id, company }: RecordContext) => {
  const person = personOf(seed, customer_id, 0, company)
  return [{ name: `${person.name} ${person.surnames}`.trim(), role: "holder" }]
}

/** Newest first, from `from_date` to `to_date`, never after the day of the start. */
const movements = ({ seed, customer_id, engine_reference, kind, nth, settings, today }: RecordContext) => {
  const { from_date = today, to_date = today } = settings
  const of = [seed, customer_id, engine_reference, kind, nth]
  const recurrence = recurrenceOf([2, 5], "movement", ...of)
  const until = to_date < today ? to_date : today
  const newest = newestOccurrence(recurrence, until)
  return Array.from({ length: countOccurrences(recurrence, from_date, until) }, (_, position) => {
    const draw = seeded("movement", ...of, newest - position)
    return {
      value_date: occurrenceDay(recurrence, newest - position),
      amount: `${draw.chance(0.7) ? "-" : ""}${amountOf(draw, 1, 900)}`,
      concept: draw.pick(["Recibo luz", "Nómina", "Supermercado", "Transferencia", "Bizum, «gracias»"]),
    }
  })
}

const details = (context: RecordContext) => ({
  ...(context.settings.read_holders === true ? { holders: holders(context) } : {}),
  ...(context.settings.read_transactions === true ? { transactions: movements(context) } : {}),
})

const account = (context: RecordContext): RecordBody => ({
  iban: ibanOf(context.draw),
  alias: context.draw.pick(["Cuenta nómina", "Cuenta común", "Ahorro vacaciones"]),
  currency: "EUR",
  balance: amountOf(context.draw, 0, 42_000),
  opened_on: dateOf(context.draw, 2001, 2024),
  ...details(context),
})

/** Number and expiry are what an engine may protect; which data that is, is not shown; own choice. */
const card = (context: RecordContext): RecordBody => {
  const { draw } = context
  const shown = {
    masked_pan: `•••• •••• •••• ${draw.digits(4)}`,
    brand: draw.pick(["visa", "mastercard"]),
    expires: `${draw.int(2027, 2031)}-${String(draw.int(1, 12)).padStart(2, "0")}`,
  }
  return {
    ...(context.shielded ? { brand: shown.brand } : shown),
    credit_limit: amountOf(draw, 300, 6_000),
    currency: "EUR",
    ...details(context),
  }
}

const contractOf =
  (extra: (draw: Draw) => RecordBody) =>
  (context: RecordContext): RecordBody => ({
    contract_number: context.draw.digits(16),
    currency: "EUR",
    opened_on: dateOf(context.draw, 2008, 2025),
    ...extra(context.draw),
    ...details(context),
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
      holders: holders(context),
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

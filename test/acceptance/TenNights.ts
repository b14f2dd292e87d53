/**
 * Ten nights of five customers at one bank, in virtual time, then published for real: what an analyst finds after
 * changes, a rerun, partial answers, a login that is refused, drift, a customer who left and one who came.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, Layer, Predicate } from "effect"
import { Service, type Body } from "../../src/client/Service.ts"
import { DuckDb } from "../../src/base/DuckDb.ts"
import type { Assignment, Job } from "../../src/jobs/Job.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { runNight } from "../../src/run/Nightly.ts"
import { Publisher } from "../../src/tables/Publisher.ts"
import { openStore } from "../../src/tables/OpenStore.ts"
import { PublisherDuckDb } from "../../src/tables/PublisherDuckDb.ts"
import { rebuild } from "../../src/tables/Rebuild.ts"
import { KnownSecrets, makeKnownSecrets } from "../../src/privacy/KnownSecrets.ts"
import { customer, features, jobOf, live, makeNights, options, wait } from "../harness/SmallNights.ts"
import { families, schemasFolder } from "../records/families.ts"

type Fields = Readonly<Record<string, unknown>>

/** What the bank says about a customer on a night, from 1 to 10; six records are a profile and an account at least. */
interface Says {
  /** Words for the embedded service. */
  readonly words: string
  readonly profile?: Fields
  readonly account?: Fields
}

const quick = "queue-60+run-60"

/** Who is asked for in a night, and what comes. */
const customersOf = (night: number): Readonly<Record<string, Says>> => ({
  // Marries; from the seventh night on there are more records: one more account.
  ana: {
    words: `${quick}+records-${night < 7 ? 3 : 4}`,
    profile: { civil_status: night < 2 ? "single" : "married" },
    account: { balance: `${100 + night}.00` },
  },
  // The source is away in the third night; the rerun at noon succeeds. From the sixth on, without an e-mail address.
  ben: {
    words: night === 3 ? `${quick}+end-NETWORK_ERROR` : `${quick}+records-3`,
    profile: night < 6 ? {} : { emails: [] },
  },
  // The last feature fails in the fourth and the tenth night.
  cleo: { words: `queue-60+run-600+records-3${night === 4 || night === 10 ? "+partial" : ""}` },
  // Drift from the fifth night on; the login is blocked from the eighth.
  dora: {
    words: night < 8 ? `${quick}+records-3` : `${quick}+end-BLOCKED_USER`,
    profile: night < 5 ? {} : { gender: 1, loyalty: "gold" },
  },
  // Leaves after the sixth night.
  ...(night > 6 ? {} : { eva: { words: `${quick}+records-3` } }),
  // Comes in the ninth, with documents; in the tenth, her e-mail addresses are no list.
  ...(night < 9
    ? {}
    : { fay: { words: `${quick}+records-3+attach-2`, profile: night < 10 ? {} : { emails: "none" } } }),
})

const assignmentsOf = (says: Readonly<Record<string, Says>>): ReadonlyArray<Assignment> =>
  Object.entries(says).map(([id, { words }]) => {
    const one = customer(id, words)
    const login = one.login._tag === "Parameters" ? { ...one.login, tokenized_access: false } : one.login
    return { ...one, login, features: features("accounts_read", "customer_information_read", "cards_read") }
  })

const jobAt = (night: number): Job => ({
  ...jobOf(assignmentsOf(customersOf(night))),
  name: "nightly",
  retry: { ...jobOf([]).retry, max_attempts: 1 },
})

/** The same body with every record as `edit` says. */
const edited = (body: Body, edit: (record: Fields) => Fields): Body => {
  const within = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(within)
    if (!Predicate.isObject(value)) return value
    if ("product" in value && "sub_family" in value) return edit(value as Fields)
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, within(one)]))
  }
  const json = within(body.json)
  return { ...body, json, bytes: new TextEncoder().encode(JSON.stringify(json)) }
}

/** Names that a reader knows, and what a night says about them. */
const editOf =
  (id: string, { profile, account }: Says) =>
  (record: Fields): Fields => {
    if (record["product"] === "customer_information")
      return {
        ...record,
        name: id.toUpperCase(),
        civil_status: "single",
        emails: [`${id}@example.test`],
        ...profile,
      }
    return record["product"] === "accounts"
      ? { ...record, alias: `account of ${id}`, balance: "50.00", ...account }
      : record
  }

const nightOf = Effect.fnUntraced(function* (night: number, rerun?: { readonly parent: string }) {
  const says = customersOf(rerun === undefined ? night : 1)
  const whose = new Map<string, string>()
  const job = rerun === undefined ? jobAt(night) : { ...jobAt(night), assignments: assignmentsOf(says) }
  const more =
    rerun === undefined
      ? {}
      : { further: true, parent: rerun.parent, only: new Set(["ben/sandbox-bank:website"]) }
  return yield* runNight(job, { ...options, ...more }).pipe(
    Effect.updateService(Service, (real) => ({
      ...real,
      readExecution: (id) =>
        Effect.tap(real.readExecution(id), (answer) =>
          Effect.sync(() => {
            const of = "view" in answer ? answer.view.customer_id : undefined
            if (of !== undefined) whose.set(id, of)
          }),
        ),
      readResults: (source, ids) =>
        Effect.map(real.readResults(source, ids), (answer) => {
          const of = whose.get(ids.execution_id ?? "") ?? ""
          const said = customersOf(night)[of]
          return answer._tag !== "Results" || said === undefined
            ? answer
            : { ...answer, body: edited(answer.body, editOf(of, said)) }
        }),
    })),
  )
})

const tenNights = Effect.gen(function* () {
  for (let night = 1; night <= 10; night += 1) {
    const { run_id } = yield* nightOf(night)
    yield* wait(0.5)
    if (night === 3) yield* nightOf(night, { parent: run_id })
    yield* wait(0.5)
  }
})

/** Lives the nights and publishes them into the folder. */
export const publishTenNights = async (root: string): Promise<void> => {
  const nights = makeNights({}, { families, startMs: Date.UTC(2026, 10, 21, 12) })
  live(nights, tenNights)
  const stores = Layer.mergeAll(
    nights.ledger.pipe(Layer.provide(Layer.succeed(KnownSecrets, makeKnownSecrets()))),
    nights.landing,
    DuckDb.layer,
    NodeFileSystem.layer,
  )
  const folder = { root, schemasFolder, share: "none" as const, toolVersion: "test" }
  const publishing = Effect.gen(function* () {
    // One version with all runs, then the newest again, as its night publishes it.
    yield* rebuild(yield* openStore(folder), true)
    const ledger = yield* Ledger
    const newest = (yield* ledger.runs).at(-1)?.fact.run_id
    const publisher = yield* Publisher
    if (newest !== undefined) yield* publisher.publish(newest)
  })
  const layers = PublisherDuckDb.layer(folder).pipe(Layer.provideMerge(stores))
  await Effect.runPromise(Effect.provide(publishing, layers))
}

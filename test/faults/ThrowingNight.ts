/**
 * One real night against a fake service in which one function throws whenever it handles what is about one
 * customer alone, and the night after it in which nothing throws any more; what both left for everybody.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Cause, Duration, Effect, Exit, Fiber, Layer, Redacted } from "effect"
import { NodeClient } from "../../src/client/NodeClient.ts"
import { FormCache } from "../../src/client/EngineForms.ts"
import { ServiceHttp } from "../../src/client/ServiceHttp.ts"
import { ServicePaced, ServicePause } from "../../src/client/ServicePaced.ts"
import { DuckDb } from "../../src/base/DuckDb.ts"
import { secretsOf } from "../harness/SecretsMemory.ts"
import { LandingFiles } from "../../src/landing/LandingFiles.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { runNight } from "../../src/run/Nightly.ts"
import { FormCheckerInProcess } from "../harness/FormCheckerInProcess.ts"
import { PublisherDuckDb } from "../../src/tables/PublisherDuckDb.ts"
import { ended, FakeService, profileOf, resultsBody, working } from "../acceptance/FakeService.ts"
import { customer, jobOf } from "../harness/SmallNights.ts"
import { readTables, type Tables } from "./PublishedTables.ts"
import { Progress, type ProgressEvent } from "../../src/task/Progress.ts"
import { concerns, throwIn, type ThrowPoint } from "./Probes.ts"
import { anId } from "../harness/Id.ts"

/**
 * From when on a function throws: once the plan is in the ledger, once the service was asked to start the
 * customer, once it said that the execution is over, once publishing and deleting began. Before the first of them no
 * customer was asked about, so no function can handle an answer about one. `resumed` is another night: a process
 * is cut off while the executions run, and the function throws in the next one, once that has its plan.
 */
export const moments = ["planned", "started", "closed", "publishing", "deleting", "resumed"] as const
export type Moment = (typeof moments)[number]

export const victim = "zz-victim"
const others = ["zz-other-1", "zz-other-2"]
const schemasFolder = new URL("../../schemas/records", import.meta.url).pathname

const job = (fake: FakeService) => ({
  ...jobOf(
    [others[0]!, victim, others[1]!].map((id) => {
      const one = customer(id, "ok")
      return {
        ...one,
        engine_reference: anId("fake-bank:website"),
        features: [],
        login: { ...one.login, tokenized_access: false },
      }
    }),
  ),
  name: "unusable",
  service: {
    _tag: "Remote" as const,
    base_url: fake.base_url,
    flows_url: fake.flows_url,
    attachments_url: fake.flows_url,
    app_secret: { _tag: "Env" as const, name: "FAKE_SECRET" },
  },
  polling: { min: Duration.millis(20), max: Duration.millis(50) },
  retry: { max_attempts: 2, base: Duration.millis(20), max: Duration.millis(50) },
  flow_results: {
    enabled: true,
    min_interval: Duration.millis(20),
    wait_final: Duration.millis(0),
    attachments: true,
  },
})

/** The service of a night, and whether it holds every execution open. */
interface Held {
  readonly fake: FakeService
  /** Executions run on until this is false; `everyoneRuns` is called once each was looked at. */
  isHeld: boolean
  everyoneRuns: () => void
}

/** Looked at twice, with records of every kind: of a family, of none, broken ones and a document. */
const listen = async (): Promise<Held> => {
  const fake = await FakeService.listen()
  const held: Held = { fake, isHeld: false, everyoneRuns: () => undefined }
  const products_count = { "customer_information:user_profile@customer_information": 1 }
  for (const id of [...others, victim]) {
    fake.scripts.set(id, {
      ids: () => ({ execution_id: anId(`exec-${id}`), session_id: anId(`sess-${id}`) }),
      state: (execution) => {
        if (execution.looks > 1 && !held.isHeld)
          return ended(execution, "COMPLETED", "COMPLETED", { products_count })
        const open = fake.executions.filter(({ looks }) => looks > 0)
        if (open.length > others.length) held.everyoneRuns()
        return working(execution)
      },
      results: () =>
        resultsBody([
          profileOf(id),
          { product: "loyalty", sub_family: "loyalty:card", card: id, attachment_id: `doc-${id}` },
          { product: "customer_information", sub_family: "customer_information:user_profile", type: id },
          { product: id },
        ]),
      attachment: () => ({ status: 200, text: `document of ${id}` }),
    })
  }
  return held
}

const layersOf = (root: string, fake: FakeService) => {
  const target = {
    base_url: fake.base_url,
    flows_url: fake.flows_url,
    attachments_url: fake.flows_url,
    app_secret: Redacted.make(fake.secret),
  }
  const service = ServicePaced.layer(target).pipe(
    Layer.provide(ServiceHttp.layer(target)),
    Layer.provide(ServicePause.layer()),
    Layer.provide(NodeClient.layer()),
  )
  const stores = Layer.mergeAll(
    Ledger.layer({ path: join(root, "ledger.sqlite") }),
    LandingFiles.layer({ root }),
    DuckDb.layer,
    NodeFileSystem.layer,
  )
  const publisher = PublisherDuckDb.layer({ root, schemasFolder, share: "none", toolVersion: "test" })
  return Layer.mergeAll(
    FormCache.layer.pipe(Layer.provide(FormCheckerInProcess.layer)),
    publisher,
    secretsOf(),
  ).pipe(Layer.provideMerge(Layer.mergeAll(service, stores)))
}

const options = { further: false, parent: undefined, only: undefined, toolVersion: "test" }

/** Rows of everybody but the victim, without times, receipts and what counts all tasks. */
const othersRows = (tables: Tables): ReadonlyArray<string> => {
  const rows: Array<string> = []
  for (const [table, { columns, rows: all }] of tables) {
    if (table === "ops.runs") continue
    const kept = columns.filter(({ name, type }) => !type.startsWith("TIMESTAMP") && !own.has(name))
    for (const row of all) {
      const text = JSON.stringify([table, ...kept.map(({ name }) => row[name])])
      if (!text.includes(victim) && others.some((id) => text.includes(id))) rows.push(plain(text))
    }
  }
  return rows.toSorted()
}
const verdictOn = (tables: Tables): string => {
  const rows = tables.get("ops.tasks")?.rows.filter(({ customer_id }) => customer_id === victim) ?? []
  return (
    rows.map(({ outcome, reason }) => `${String(outcome)} ${String(reason)}`).join(" and ") || "no verdict"
  )
}
/** Keyed by the folder, or a hash over times. */
const own: ReadonlySet<string> = new Set(["external_execution_id", "landed_sha256", "run_id"])
const plain = (text: string): string => text.replaceAll(/unusable\.\d{4}-\d\d-\d\d(?:\.\d+)?/g, "<run>")

export interface NightLeft {
  readonly rows: ReadonlyArray<string>
  readonly complaints: ReadonlyArray<string>
  /** What the night's tables say of the victim's task. */
  readonly verdict: string
  /** Whether the function was reached at all, and whether publishing had begun by then. */
  readonly threw: boolean
  readonly isLate: boolean
  /** What was called about the victim, and when. */
  readonly called: ReadonlyMap<string, ReadonlySet<Moment>>
  /** What was called before the first moment. */
  readonly early: ReadonlySet<string>
}

/** How far a night is: what it tells, and what the service saw. */
const follow = ({ fake }: Held, isResumed: boolean) => {
  const told = new Set<string>()
  const reached = (): Moment | undefined => {
    if (!told.has("Planned")) return undefined
    if (isResumed) return "resumed"
    if (told.has("deleting")) return "deleting"
    if (told.has("publishing")) return "publishing"
    const asked = fake.executions.find(({ customer_id }) => customer_id === victim)
    if (asked === undefined) return "planned"
    return asked.open ? "started" : "closed"
  }
  const tell = (event: ProgressEvent) =>
    Effect.sync(() => void told.add(event._tag === "Stage" ? event.stage : event._tag))
  return { reached, tell, isLate: () => told.has("publishing") }
}

/** A process that is cut off once every execution runs. */
const cutOff = async <A, E>(held: Held, night: Effect.Effect<A, E>) => {
  held.isHeld = true
  const everyoneRuns = new Promise<void>((resolve) => (held.everyoneRuns = resolve))
  const fiber = Effect.runFork(night)
  await everyoneRuns
  await Effect.runPromise(Fiber.interrupt(fiber))
  held.isHeld = false
}

/**
 * `point` throws; without one the night is undisturbed and only says what was called for the victim, by the
 * process that resumes it or by the only one.
 */
export const throwingNight = async (
  point: ThrowPoint<Moment> | undefined,
  isResumed = point?.from === "resumed",
): Promise<NightLeft> => {
  const root = mkdtempSync(join(tmpdir(), "nightjar-unusable-"))
  const held = await listen()
  const { fake } = held
  const complaints: Array<string> = []
  const night = () => Effect.provide(runNight(job(fake), options), layersOf(root, fake))
  const one = () => Effect.runPromiseExit(night())
  if (isResumed) await cutOff(held, night())
  const { reached, tell, isLate } = follow(held, isResumed)
  const isDeleted = () => fake.removed.some(({ customer_id }) => customer_id === victim)
  /** What happens after the deletion, when the outcome is published, has nothing left to keep. */
  let wasDeleted = false
  let wasLate = false
  const watch = throwIn(point, {
    moments,
    reached,
    isMeant: (args) => concerns(args, victim, others),
    onFirst: () => {
      wasDeleted = isDeleted()
      wasLate = isLate()
    },
  })
  try {
    const first = await Effect.runPromiseExit(Effect.provideService(night(), Progress, { tell }))
    const watched = { ...watch.stop(), isLate: wasLate }
    const { threw } = watched
    if (Exit.isFailure(first)) {
      complaints.push(`the night failed: ${Cause.pretty(first.cause)}`)
      return { rows: [], complaints, verdict: "no tables", ...watched }
    }
    const tables = await readTables(root)
    const rows = othersRows(tables)
    if (threw && isDeleted() && !wasDeleted) complaints.push("the victim's execution was deleted")
    const next = await one()
    if (Exit.isFailure(next))
      complaints.push(`the next run failed: ${Cause.pretty(next.cause).split("\n")[0]}`)
    else if (othersRows(await readTables(root)).join("\n") !== rows.join("\n"))
      complaints.push("the next run changed the others' rows")
    const starts = fake.startsOf(victim).length
    if (starts > 1) complaints.push(`the victim was started ${starts} times`)
    return { rows, complaints, verdict: verdictOn(tables), ...watched }
  } finally {
    watch.stop()
    await fake.close()
    rmSync(root, { recursive: true, force: true })
  }
}

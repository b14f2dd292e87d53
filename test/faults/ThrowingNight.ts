/**
 * One real night against a fake service in which one function throws whenever it handles what is about one
 * customer alone, and the night after it in which nothing throws any more; what both left for everybody.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Cause, Duration, Effect, Exit, Layer, Redacted } from "effect"
import { NodeClient } from "../../src/client/NodeClient.ts"
import { ServiceCatalogue } from "../../src/forms/ServiceCatalogue.ts"
import { ServiceHttp } from "../../src/client/ServiceHttp.ts"
import { ServicePaced, ServicePause } from "../../src/client/ServicePaced.ts"
import { DuckDb } from "../../src/duckdb/DuckDb.ts"
import { Secrets } from "../../src/jobs/Secrets.ts"
import { LandingFiles } from "../../src/landing/LandingFiles.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { runNight } from "../../src/night/Nightly.ts"
import { FormCheckerInProcess } from "../harness/FormCheckerInProcess.ts"
import { FormCache } from "../../src/forms/EngineForms.ts"
import { PublisherDuckDb } from "../../src/publishing/PublisherDuckDb.ts"
import { ended, FakeService, profileOf, resultsBody, working } from "../acceptance/FakeService.ts"
import { customer, jobOf } from "../harness/SmallNights.ts"
import { readTables } from "./PublishedTables.ts"
import { concerns, throwIn } from "./Probes.ts"
import { anId } from "../harness/Id.ts"

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

/** Looked at twice, with records of every kind: of a family, of none, broken ones and a document. */
const listen = async (): Promise<FakeService> => {
  const fake = await FakeService.listen()
  for (const id of [...others, victim]) {
    const products_count = { "customer_information:user_profile@customer_information": 1 }
    fake.scripts.set(id, {
      ids: () => ({ execution_id: anId(`exec-${id}`), session_id: anId(`sess-${id}`) }),
      state: (execution) =>
        execution.looks === 1
          ? working(execution)
          : ended(execution, "COMPLETED", "COMPLETED", { products_count }),
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
  return fake
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
    FormCache.layer.pipe(Layer.provide(Layer.mergeAll(ServiceCatalogue.layer, FormCheckerInProcess.layer))),
    publisher,
    Secrets.layerMemory(new Map()),
  ).pipe(Layer.provideMerge(Layer.mergeAll(service, stores)))
}

const options = { further: false, parent: undefined, only: undefined, toolVersion: "test" }

/** Rows of everybody but the victim, without times, receipts and what counts all tasks. */
const othersRows = async (root: string): Promise<ReadonlyArray<string>> => {
  const rows: Array<string> = []
  for (const [table, { columns, rows: all }] of await readTables(root)) {
    if (table === "runs") continue
    const kept = columns.filter(({ name, type }) => !type.startsWith("TIMESTAMP") && !own.has(name))
    for (const row of all) {
      const text = JSON.stringify([table, ...kept.map(({ name }) => row[name])])
      if (!text.includes(victim) && others.some((id) => text.includes(id))) rows.push(plain(text))
    }
  }
  return rows.toSorted()
}
/** Keyed by the folder, or a hash over times. */
const own: ReadonlySet<string> = new Set(["external_execution_id", "landed_sha256", "run_id"])
const plain = (text: string): string => text.replaceAll(/unusable\.\d{4}-\d\d-\d\d(?:\.\d+)?/g, "<run>")

export interface NightLeft {
  readonly rows: ReadonlyArray<string>
  readonly complaints: ReadonlyArray<string>
  /** Whether the function was reached at all. */
  readonly threw: boolean
  readonly called: ReadonlySet<string>
}

/** `probe` throws; without one the night is undisturbed and only says what was called for the victim. */
export const throwingNight = async (probe: string | undefined): Promise<NightLeft> => {
  const root = mkdtempSync(join(tmpdir(), "nightjar-unusable-"))
  const fake = await listen()
  const complaints: Array<string> = []
  const one = () => Effect.runPromiseExit(Effect.provide(runNight(job(fake), options), layersOf(root, fake)))
  const isDeleted = () => fake.removed.some(({ customer_id }) => customer_id === victim)
  /** What happens after the deletion, when the outcome is published, has nothing left to keep. */
  let wasDeleted = false
  const watch = throwIn(
    probe,
    (args) => concerns(args, victim, others),
    () => (wasDeleted = isDeleted()),
  )
  try {
    const night = await one()
    const { threw, called } = watch.stop()
    if (Exit.isFailure(night)) {
      complaints.push(`the night failed: ${Cause.pretty(night.cause).split("\n").slice(0, 4).join(" ")}`)
      return { rows: [], complaints, threw, called }
    }
    const rows = await othersRows(root)
    if (threw && isDeleted() && !wasDeleted) complaints.push("the victim's execution was deleted")
    const next = await one()
    if (Exit.isFailure(next))
      complaints.push(`the next run failed: ${Cause.pretty(next.cause).split("\n")[0]}`)
    else if ((await othersRows(root)).join("\n") !== rows.join("\n"))
      complaints.push("the next run changed the others' rows")
    const starts = fake.startsOf(victim).length
    if (starts > 1) complaints.push(`the victim was started ${starts} times`)
    return { rows, complaints, threw, called }
  } finally {
    watch.stop()
    await fake.close()
    rmSync(root, { recursive: true, force: true })
  }
}

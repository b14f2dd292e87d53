/**
 * `nightjar doctor [JOB…]`: looks at everything that a night rests on, before the night: machine, output
 * folder, ledger, secrets, service. Starts nothing and sends no login.
 */
import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs"
import { Clock, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import type { Job, SecretReference } from "../../jobs/Job.ts"
import { endsSoon } from "../../tokens/TokenLogin.ts"
import { counted, table } from "../../report/TextTable.ts"
import { jsonFlag, outputFolder } from "../CommonFlags.ts"
import { endingOf, endWith, exitCodes } from "../Failures.ts"
import { loadJobs } from "../Jobs.ts"
import type { Problem } from "../../publishing/Verify.ts"
import { openedLedger } from "../LedgerOf.ts"
import { problemsOf } from "../LookAtFolder.ts"
import { lostLedger, refusalOf } from "../OutputGuard.ts"
import { Output, say, sayJson } from "../Output.ts"
import { Wiring } from "../Wiring.ts"

interface Check {
  readonly what: string
  readonly verdict: "ok" | "warning" | "failed"
  readonly says: string
}
const ok = (what: string, says: string): Check => ({ what, verdict: "ok", says })
const warning = (what: string, says: string): Check => ({ what, verdict: "warning", says })
const failed = (what: string, says: string): Check => ({ what, verdict: "failed", says })

const freeBytesMin = 1024 ** 3

const machineChecks = (): ReadonlyArray<Check> => {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
  const recent = major > 22 || (major === 22 && minor >= 19)
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  return [
    recent ? ok("node", process.version) : failed("node", `${process.version}; 22.19 or newer is needed`),
    ok("time zone", `${zone}; a job's \`timezone\` overrides it`),
  ]
}

const modeText = (mode: number): string => (mode & 0o777).toString(8).padStart(4, "0")

const folderChecks = (output: string): ReadonlyArray<Check> => {
  const what = "output folder"
  if (!existsSync(output)) return [ok(what, `${output} is not there yet; the first run makes it`)]
  try {
    accessSync(output, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch {
    return [failed(what, `${output} cannot be written by this user`)]
  }
  const refusal = refusalOf(output)
  if (refusal !== undefined) return [failed(what, `${refusal}: give --output another one`)]
  const mode = statSync(output).mode & 0o777
  const { bavail, bsize } = statfsSync(output)
  const free = bavail * bsize
  const gigabytes = `${(free / 1024 ** 3).toFixed(1)} GiB free`
  return [
    (mode & 0o007) === 0
      ? ok(what, `${output}, mode ${modeText(mode)}`)
      : warning(
          what,
          `${output} has mode ${modeText(mode)}: others may look into it; the next run closes it`,
        ),
    free >= freeBytesMin
      ? ok("free space", gigabytes)
      : warning("free space", `${gigabytes}: little for a night`),
  ]
}

/** Ledger, landing and tables, as `verify` looks at them. */
const contentChecks = Effect.fnUntraced(function* (output: string) {
  const lost = lostLedger(output)
  if (lost !== undefined) return [failed("ledger", lost)]
  if (!existsSync(`${output}/ledger.sqlite`)) return [ok("ledger", "none yet")]
  const wiring = yield* Wiring
  const runs = yield* Effect.flatMap(openedLedger, (ledger) => ledger.runs).pipe(
    Effect.provide(wiring.ledger(output, "read-only")),
    Effect.match({
      onSuccess: (all) => ok("ledger", counted(all.length, "run")),
      onFailure: ({ message }) => failed("ledger", `${message}; put a copy of ledger.sqlite back`),
    }),
  )
  const problems = yield* problemsOf(output).pipe(
    Effect.catch((error) => Effect.succeed([{ where: output, problem: error.message, next: "see above" }])),
  )
  return [runs, ...problemsCheck(problems)]
})

const problemsCheck = (problems: ReadonlyArray<Problem>): ReadonlyArray<Check> => {
  const [first] = problems
  if (first === undefined) return [ok("files and tables", "they agree with the ledger")]
  const more = problems.length > 1 ? `; and ${problems.length - 1} more, which \`nightjar verify\` lists` : ""
  return [failed("files and tables", `${first.where}: ${first.problem}; ${first.next}${more}`)]
}

const referencesOf = (job: Job): ReadonlyArray<SecretReference> => [
  ...(job.service._tag === "Remote" ? [job.service.app_secret] : []),
  ...(job.tokens_key === undefined ? [] : [job.tokens_key]),
  ...job.assignments.flatMap(({ login }) =>
    login._tag === "Parameters"
      ? Object.values(login.parameters).flatMap((source) =>
          source._tag === "Reference" ? [source.reference] : [],
        )
      : [],
  ),
]

const told = 5

const secretsCheck = Effect.fnUntraced(function* (job: Job) {
  const { Secrets } = yield* Effect.promise(() => import("../../jobs/Secrets.ts"))
  const { resolve } = yield* Secrets
  const what = `${job.path}: secrets`
  const distinct = new Map(referencesOf(job).map((reference) => [JSON.stringify(reference), reference]))
  const answers = yield* Effect.forEach(
    distinct.values(),
    (reference) =>
      Effect.match(resolve(reference), { onSuccess: () => [], onFailure: ({ message }) => [message] }),
    { concurrency: 8 },
  )
  const missing = answers.flat()
  if (missing.length === 0) return ok(what, `${distinct.size} references, all of them resolve`)
  const more = missing.length > told ? `; and ${missing.length - told} more` : ""
  return failed(what, `${missing.slice(0, told).join("; ")}${more}`)
})

/** The key opens the store, and which of its tokens end soon. */
const tokensCheck = Effect.fnUntraced(function* (job: Job, output: string) {
  if (job.tokens_key === undefined) return []
  const what = `${job.path}: token store`
  const wiring = yield* Wiring
  const { TokenStore } = yield* Effect.promise(() => import("../../tokens/TokenStore.ts"))
  const look = Effect.gen(function* () {
    const store = yield* TokenStore
    if (store._tag === "Closed") return []
    const now = yield* Clock.currentTimeMillis
    const kept = (yield* store.tokens).filter(
      ({ service, dropped }) => service === store.service && dropped === undefined,
    )
    const ending = kept.filter((token) => endsSoon(token, now)).length
    const says = `the key opens it; ${kept.length} tokens of this service`
    return [ending === 0 ? ok(what, says) : warning(what, `${says}, ${ending} within 14 days of their end`)]
  })
  return yield* look.pipe(
    Effect.provide(wiring.tokenStore(job, output)),
    Effect.catch(({ message }) => Effect.succeed([failed(what, message)])),
  )
})

const serviceCheck = Effect.fnUntraced(function* (job: Job, output: string) {
  const wiring = yield* Wiring
  const { Service } = yield* Effect.promise(() => import("../../client/Service.ts"))
  const what = `${job.path}: service`
  const where = job.service._tag === "Remote" ? new URL(job.service.base_url).host : "the embedded service"
  return yield* Effect.flatMap(Service, (service) => service.listEngines).pipe(
    Effect.provide(wiring.plan(job.service, output)),
    Effect.match({
      onSuccess: () => ok(what, `${where} answers and takes the application secret`),
      onFailure: (error) =>
        failed(what, endingOf(error)?.lines[0]?.replace(/^nightjar: /, "") ?? "it does not answer"),
    }),
  )
})

export const doctor = Command.make(
  "doctor",
  {
    jobs: Argument.String("JOB").pipe(
      Argument.withDescription("Job files whose secrets and service are looked at too"),
      Argument.variadic(),
    ),
    json: jsonFlag,
  },
  Effect.fn("Doctor.handle")(function* ({ jobs, json }) {
    const output = yield* outputFolder
    const wiring = yield* Wiring
    const loaded = jobs.length === 0 ? [] : yield* loadJobs(jobs)
    const ofJobs = yield* Effect.forEach(loaded, (job) =>
      Effect.map(
        Effect.all([secretsCheck(job), tokensCheck(job, output), serviceCheck(job, output)]),
        ([secrets, tokens, service]) => [secrets, ...tokens, service],
      ),
    ).pipe(Effect.provide(wiring.secrets))
    const checks = [
      ...machineChecks(),
      ...folderChecks(output),
      ...(yield* contentChecks(output)),
      ...ofJobs.flat(),
    ]
    if (json) yield* sayJson(checks)
    else {
      const { out } = yield* Output
      const rows = checks.map(({ verdict, what, says }) => [verdict, what, says])
      yield* say(table(["", "what", "finding"], rows, { width: out.width }))
    }
    const faults = checks.filter(({ verdict }) => verdict === "failed")
    const onlyService = faults.length > 0 && faults.every(({ what }) => what.endsWith(": service"))
    yield* endWith(faults.length === 0 ? exitCodes.ok : onlyService ? exitCodes.refused : exitCodes.usage)
  }),
).pipe(
  Command.withDescription("Looks at machine, output folder, ledger, and at the secrets and services of jobs"),
)

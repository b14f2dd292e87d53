/**
 * `nightjar doctor [JOB…]`: checks everything that a run depends on, before the run: machine, output
 * folder, ledger, secrets, alarms, service. Starts nothing at a service and sends no login.
 */
import { accessSync, constants, existsSync, statSync } from "node:fs"
import { Clock, Effect } from "effect"
import { Argument } from "effect/cli"
import type { Job } from "../../jobs/Job.ts"
import type { Secrets } from "../../jobs/Secrets.ts"
import { endsSoon } from "../../tokens/TokenLogin.ts"
import { counted } from "../../base/Text.ts"
import { knownZone } from "../../base/Time.ts"
import { table } from "../../report/TextTable.ts"
import { withId } from "../../messages/Catalogue.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import { alarmsCheck } from "../Notices.ts"
import {
  askService,
  clockCheck,
  failed,
  ledgerCheck,
  leftoversCheck,
  modesCheck,
  ok,
  schemasCheck,
  spaceCheck,
  subscriptionsCheck,
  warning,
} from "../Health.ts"
import type { Finding } from "../Health.ts"
import { command } from "../CommandRow.ts"
import { switchFlag } from "../CommonFlags.ts"
import { toolVersion } from "../Failures.ts"
import { loadJobs } from "../Jobs.ts"
import { openedLedger, problemsOf } from "../LookAtFolder.ts"
import { lostLedger, refusalOf } from "../RunFolder.ts"
import { Wiring } from "../Wiring.ts"

/** One check: its name, and how it looks. No line without a finding; what mends one is in its message. */
interface Check<Subject, R> {
  readonly what: string
  readonly look: (subject: Subject) => Finding | undefined | Effect.Effect<Finding | undefined, never, R>
}

/** The lines of these checks, one after another. */
const lookAt = <Subject, R>(checks: ReadonlyArray<Check<Subject, R>>, subject: Subject, of = "") =>
  Effect.gen(function* () {
    const lines: Array<Finding & Pick<Check<Subject, R>, "what">> = []
    for (const { what, look } of checks) {
      const looked = look(subject)
      const finding = Effect.isEffect(looked) ? yield* looked : looked
      if (finding !== undefined) lines.push({ what: `${of}${what}`, ...finding })
    }
    return lines
  })

const nodeFinding = (): Finding => {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
  const isRecent = major > 22 || (major === 22 && minor >= 19)
  return isRecent ? ok(process.version) : failed("node-too-old", { version: process.version })
}

const zoneFinding = (): Finding => {
  const zone = knownZone()
  return zone === undefined ? warning("zone-unknown") : ok(`${zone}; a job's \`timezone\` overrides it`)
}

const modeText = (mode: number): string => (mode & 0o777).toString(8).padStart(4, "0")

const folderFinding = (output: string): Finding => {
  if (!existsSync(output)) return ok(`${output} does not exist yet; the first run creates it`)
  try {
    accessSync(output, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch {
    return failed("output-closed", { output })
  }
  const refusal = refusalOf(output)
  if (refusal !== undefined) return failed("output-foreign", { detail: refusal.message })
  const mode = statSync(output).mode & 0o777
  return (mode & 0o007) === 0
    ? ok(`${output}, mode ${modeText(mode)}`)
    : warning("output-open-to-others", { output, mode: modeText(mode) })
}

/** An output folder and its ledger, read once for all checks. */
const folderOf = Effect.fnUntraced(function* (output: string) {
  const folder = { output, exists: existsSync(output), finding: folderFinding(output) }
  const without = (ledger: Finding, hasLedger = false) => ({ ...folder, ledger, hasLedger, runs: undefined })
  const lost = lostLedger(output)
  if (lost !== undefined) return without(failed("ledger-absent", { output, found: lost }))
  if (!existsSync(`${output}/ledger.sqlite`)) return without(ok("none yet"))
  const wiring = yield* Wiring
  return yield* Effect.flatMap(openedLedger, (ledger) => Effect.all([ledger.runs, ledger.archived])).pipe(
    Effect.provide(wiring.ledger(output, "read-only")),
    Effect.match({
      onSuccess: ([runs, { size }]) => {
        const ledger = ledgerCheck(output, runs.length, size)
        return { ...folder, ledger, hasLedger: true, runs }
      },
      onFailure: ({ message }) => without(failed("ledger-unreadable", { detail: message }), true),
    }),
  )
})
type Folder = Effect.Success<ReturnType<typeof folderOf>>

/** Ledger, landing and tables, as `verify` checks them. */
const contentFinding = (output: string) =>
  problemsOf(output).pipe(
    Effect.match({
      onSuccess: (problems) => {
        const [first] = problems
        if (first === undefined) return ok("they agree with the ledger")
        const { where, problem } = first
        const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ""
        return failed("folder-disagrees", { where, problem, more })
      },
      onFailure: ({ message }) => failed("folder-unchecked", { output, why: message }),
    }),
  )

const folderChecks: ReadonlyArray<Check<Folder, Effect.Services<ReturnType<typeof contentFinding>>>> = [
  { what: "nightjar", look: () => ok(toolVersion) },
  { what: "node", look: nodeFinding },
  { what: "time zone", look: zoneFinding },
  { what: "output folder", look: ({ finding }) => finding },
  {
    what: "private files",
    look: ({ output, exists, finding }) =>
      exists && finding.verdict !== "failed" ? modesCheck(output) : undefined,
  },
  {
    what: "free space",
    look: ({ output, exists, runs }) => (exists ? spaceCheck(output, runs ?? []) : undefined),
  },
  { what: "ledger", look: ({ ledger }) => ledger },
  { what: "left at the service", look: ({ runs }) => runs && leftoversCheck(runs) },
  {
    what: "files and tables",
    look: ({ output, hasLedger }) => (hasLedger ? contentFinding(output) : undefined),
  },
  {
    what: "record schemas",
    look: ({ output, hasLedger }) => (hasLedger ? schemasCheck(output) : undefined),
  },
]

interface OfJob {
  readonly job: Job
  readonly output: string
  readonly service: Effect.Success<ReturnType<typeof askService>>
}

const told = 5
/** A fault of the service alone ends with an exit code of its own. */
const serviceName = "service"

const secretsCheck = Effect.fnUntraced(function* (job: Job) {
  const { Secrets } = yield* Effect.promise(() => import("../../jobs/Secrets.ts"))
  const { referencesOf } = yield* Effect.promise(() => import("../../jobs/EnvFile.ts"))
  const { resolve } = yield* Secrets
  // Those of `notify` and `telemetry` have a line of their own.
  const { telemetry: _, ...ofNight } = { ...job, notify: [] }
  const distinct = new Map(referencesOf(ofNight).map((reference) => [JSON.stringify(reference), reference]))
  const answers = yield* Effect.forEach(
    distinct.values(),
    (reference) =>
      Effect.match(resolve(reference), { onSuccess: () => [], onFailure: ({ message }) => [message] }),
    { concurrency: 8 },
  )
  const missing = answers.flat()
  const from = job.env_file === undefined ? "" : `, also from ${job.env_file}`
  if (missing.length === 0) return ok(`${counted(distinct.size, "reference")} resolved${from}`)
  const more = missing.length > told ? `; and ${missing.length - told} more` : ""
  const detail = `${missing.slice(0, told).join("; ")}${more}`
  return failed("secrets-unavailable", { detail })
})

/** Whether the key opens the store, and which of its tokens expire soon. */
const tokensCheck = Effect.fnUntraced(function* ({ job, output }: OfJob) {
  if (job.tokens_key === undefined) return undefined
  const wiring = yield* Wiring
  const { TokenStore } = yield* Effect.promise(() => import("../../tokens/TokenStore.ts"))
  const look = Effect.gen(function* () {
    const store = yield* TokenStore
    if (store._tag === "Closed") return undefined
    const now = yield* Clock.currentTimeMillis
    const kept = (yield* store.tokens).filter(
      ({ service, dropped }) => service === store.service && dropped === undefined,
    )
    const ending = kept.filter((token) => endsSoon(token, now)).length
    const tokens = counted(kept.length, "token")
    return ending === 0
      ? ok(`the key opens it; ${tokens} of this service`)
      : warning("tokens-ending", { tokens, ending })
  })
  return yield* look.pipe(
    Effect.provide(wiring.tokenStore(job, output)),
    Effect.catch(({ message }) => Effect.succeed(failed("store-closed", { detail: message }))),
  )
})

const jobChecks: ReadonlyArray<Check<OfJob, Secrets | Wiring>> = [
  { what: "secrets", look: ({ job }) => secretsCheck(job) },
  { what: "alarms", look: ({ job }) => alarmsCheck(job) },
  { what: "token store", look: tokensCheck },
  { what: serviceName, look: ({ service }) => service.answer },
  { what: "clock", look: ({ service }) => (service.isElsewhere ? clockCheck(service.ahead) : undefined) },
  {
    what: "flow events",
    look: ({ job, service }) => (service.isElsewhere ? subscriptionsCheck(job) : undefined),
  },
]

const canaryLine = Effect.flatMap(
  Effect.promise(() => import("../CanaryNight.ts")),
  ({ canaryCheck }) => canaryCheck,
)

export const doctor = command("doctor", {
  more: `
    --canary also runs a test night in a temporary folder, against a service that repeats every secret, and searches
    all that it wrote, showed and sent for them.`,
  flags: {
    jobs: Argument.String("JOB").pipe(
      Argument.withDescription("Job files whose secrets and services to check"),
      Argument.variadic(),
    ),
    canary: switchFlag("canary", "Also prove that no secret leaks"),
  },
  run: ({ jobs, canary }, output) =>
    Effect.gen(function* () {
      const wiring = yield* Wiring
      const loaded = jobs.length === 0 ? [] : yield* loadJobs(jobs)
      const ofJobs = yield* Effect.forEach(loaded, (job) =>
        Effect.flatMap(askService(job, output), (service) =>
          lookAt(jobChecks, { job, output, service }, `${job.path}: `),
        ),
      ).pipe(Effect.provide(wiring.secrets))
      return [
        ...(yield* lookAt(folderChecks, yield* folderOf(output))),
        ...ofJobs.flat(),
        ...(canary ? [{ what: "canary", ...(yield* canaryLine) }] : []),
      ]
    }),
  text: (checks, out) => {
    const rows = checks.map(({ verdict, what, says, id }) => [
      verdict,
      what,
      id === undefined ? says : withId(id, says),
    ])
    return table(["", "what", "finding"], rows, out)
  },
  exit: (checks) => {
    const faults = checks.filter(({ verdict }) => verdict === "failed")
    if (faults.length === 0) return exitCodes.ok
    const isService = faults.every(({ what }) => what.endsWith(`: ${serviceName}`))
    return isService ? exitCodes.refused : exitCodes.usage
  },
})

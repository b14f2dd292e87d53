/**
 * `nightjar doctor [JOB…]`: checks everything that a run depends on, before the run: machine, output
 * folder, ledger, secrets, alarms, service. Starts nothing at a service and sends no login.
 */
import { accessSync, constants, existsSync, statSync } from "node:fs"
import { Clock, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import type { Job } from "../../jobs/Job.ts"
import { endsSoon } from "../../tokens/TokenLogin.ts"
import { counted } from "../../base/Text.ts"
import { knownZone } from "../../base/Time.ts"
import { table } from "../../report/TextTable.ts"
import { withId } from "../../messages/Catalogue.ts"
import type { Problem } from "../../messages/Catalogue.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import { alarmsCheck } from "../Notices.ts"
import {
  failed,
  ledgerCheck,
  leftoversCheck,
  modesCheck,
  ok,
  schemasCheck,
  spaceCheck,
  warning,
} from "../Health.ts"
import type { Check } from "../Health.ts"
import { jsonFlag, outputFolder, switchFlag } from "../CommonFlags.ts"
import { endWith, toolVersion } from "../Failures.ts"
import { loadJobs } from "../Jobs.ts"
import { openedLedger, problemsOf } from "../LookAtFolder.ts"
import { lostLedger, refusalOf } from "../RunFolder.ts"
import { Output, say, sayJson } from "../Output.ts"
import { serviceChecks } from "../ServiceHealth.ts"
import { Wiring } from "../Wiring.ts"

const machineChecks = (): ReadonlyArray<Check> => {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
  const recent = major > 22 || (major === 22 && minor >= 19)
  const zone = knownZone()
  return [
    ok("nightjar", toolVersion),
    recent ? ok("node", process.version) : failed("node", "node-too-old", { version: process.version }),
    zone === undefined
      ? warning("time zone", "zone-unknown")
      : ok("time zone", `${zone}; a job's \`timezone\` overrides it`),
  ]
}

const modeText = (mode: number): string => (mode & 0o777).toString(8).padStart(4, "0")

const folderChecks = (output: string): ReadonlyArray<Check> => {
  const what = "output folder"
  if (!existsSync(output)) return [ok(what, `${output} does not exist yet; the first run creates it`)]
  try {
    accessSync(output, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch {
    return [failed(what, "output-closed", { output })]
  }
  const refusal = refusalOf(output)
  if (refusal !== undefined) return [failed(what, "output-foreign", { detail: refusal.message })]
  const mode = statSync(output).mode & 0o777
  return [
    (mode & 0o007) === 0
      ? ok(what, `${output}, mode ${modeText(mode)}`)
      : warning(what, "output-open-to-others", { output, mode: modeText(mode) }),
    modesCheck(output),
  ]
}

/** Ledger, landing and tables, checked as by `verify`, and whether the disk holds the next nights. */
const contentChecks = Effect.fnUntraced(function* (output: string) {
  const lost = lostLedger(output)
  const space = existsSync(output) ? [spaceCheck(output, [])] : []
  if (lost !== undefined) return [...space, failed("ledger", "ledger-absent", { output, found: lost })]
  if (!existsSync(`${output}/ledger.sqlite`)) return [...space, ok("ledger", "none yet")]
  const wiring = yield* Wiring
  const runs = yield* Effect.flatMap(openedLedger, (ledger) =>
    Effect.all([ledger.runs, ledger.archived]),
  ).pipe(
    Effect.provide(wiring.ledger(output, "read-only")),
    Effect.match({
      onSuccess: ([all, archived]) => [
        spaceCheck(output, all),
        ledgerCheck(output, all.length, archived.size),
        leftoversCheck(all),
      ],
      onFailure: ({ message }) => [...space, failed("ledger", "ledger-unreadable", { detail: message })],
    }),
  )
  const checked = yield* problemsOf(output).pipe(
    Effect.match({
      onSuccess: problemsCheck,
      onFailure: ({ message }) => failed("files and tables", "folder-unchecked", { output, why: message }),
    }),
  )
  return [...runs, checked, ...(yield* schemasCheck(output))]
})

const problemsCheck = (problems: ReadonlyArray<Problem>): Check => {
  const [first] = problems
  if (first === undefined) return ok("files and tables", "they agree with the ledger")
  const { where, problem } = first
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ""
  return failed("files and tables", "folder-disagrees", { where, problem, more })
}

const told = 5

const secretsCheck = Effect.fnUntraced(function* (job: Job) {
  const { Secrets } = yield* Effect.promise(() => import("../../jobs/Secrets.ts"))
  const { referencesOf } = yield* Effect.promise(() => import("../../jobs/EnvFile.ts"))
  const { resolve } = yield* Secrets
  const what = `${job.path}: secrets`
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
  if (missing.length === 0) return ok(what, `${counted(distinct.size, "reference")} resolved${from}`)
  const more = missing.length > told ? `; and ${missing.length - told} more` : ""
  const detail = `${missing.slice(0, told).join("; ")}${more}`
  return failed(what, "secrets-unavailable", { detail })
})

/** Whether the key opens the store, and which of its tokens expire soon. */
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
    const tokens = counted(kept.length, "token")
    return [
      ending === 0
        ? ok(what, `the key opens it; ${tokens} of this service`)
        : warning(what, "tokens-ending", { tokens, ending }),
    ]
  })
  return yield* look.pipe(
    Effect.provide(wiring.tokenStore(job, output)),
    Effect.catch(({ message }) => Effect.succeed([failed(what, "store-closed", { detail: message })])),
  )
})

const canaryLine = Effect.flatMap(
  Effect.promise(() => import("../CanaryNight.ts")),
  ({ canaryCheck }) => canaryCheck,
)

export const doctor = Command.make(
  "doctor",
  {
    jobs: Argument.String("JOB").pipe(
      Argument.withDescription("Job files whose secrets and services to check"),
      Argument.variadic(),
    ),
    canary: switchFlag("canary", "Also prove that no secret leaks"),
    json: jsonFlag,
  },
  Effect.fn("Doctor.handle")(function* ({ jobs, canary, json }) {
    const output = yield* outputFolder
    const wiring = yield* Wiring
    const loaded = jobs.length === 0 ? [] : yield* loadJobs(jobs)
    const ofJobs = yield* Effect.forEach(loaded, (job) =>
      Effect.map(
        Effect.all([
          secretsCheck(job),
          alarmsCheck(job),
          tokensCheck(job, output),
          serviceChecks(job, output),
        ]),
        ([secrets, alarms, tokens, service]) => [secrets, ...alarms, ...tokens, ...service],
      ),
    ).pipe(Effect.provide(wiring.secrets))
    const checks = [
      ...machineChecks(),
      ...folderChecks(output),
      ...(yield* contentChecks(output)),
      ...ofJobs.flat(),
      ...(canary ? [yield* canaryLine] : []),
    ]
    if (json) yield* sayJson(checks)
    else {
      const { out } = yield* Output
      const rows = checks.map(({ verdict, what, says, id }) => [
        verdict,
        what,
        id === undefined ? says : withId(id, says),
      ])
      yield* say(table(["", "what", "finding"], rows, { width: out.width }))
    }
    const faults = checks.filter(({ verdict }) => verdict === "failed")
    const onlyService = faults.length > 0 && faults.every(({ what }) => what.endsWith(": service"))
    yield* endWith(faults.length === 0 ? exitCodes.ok : onlyService ? exitCodes.refused : exitCodes.usage)
  }),
).pipe(
  Command.withShortDescription("Checks machine, folder, ledger, secrets, alarms and services"),
  Command.withDescription(
    "Checks machine, output folder, ledger, secrets, alarms and services\n\n" +
      "--canary also runs a test night in a temporary folder, against a service that\n" +
      "repeats every secret, and searches all that it wrote, showed and sent for them.",
  ),
)

/**
 * `nightjar backup DIR`: a copy of the output folder that may be made while a run works in it, checked as
 * `verify` checks a folder. To restore it, use the copy as the output folder.
 */
import { existsSync, readdirSync, statSync } from "node:fs"
import { resolve, sep } from "node:path"
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { bytesText, counted } from "../../base/Text.ts"
import type { BackupFailed, BackupHolds } from "../../folder/Backup.ts"
import { withId } from "../../messages/Catalogue.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import { jsonFlag, outputFolder } from "../CommonFlags.ts"
import { endWith, refuse } from "../Failures.ts"
import { openedLedger, problemsOf, requireLedger } from "../LookAtFolder.ts"
import { say, sayJson } from "../Output.ts"
import { refusalOf } from "../RunFolder.ts"
import { keepUnpruned } from "../PruneJobs.ts"
import { Wiring } from "../Wiring.ts"
import { backup as copy } from "../../folder/Backup.ts"

/** Why nothing may be copied into this folder. */
const refusalOfTarget = (output: string, to: string) => {
  if (`${to}${sep}`.startsWith(`${resolve(output)}${sep}`)) return refuse("backup-inside", { folder: to })
  const isEmptyFolder = !existsSync(to) || (statSync(to).isDirectory() && readdirSync(to).length === 0)
  return isEmptyFolder ? refusalOf(to) : refuse("backup-not-empty", { folder: to })
}

const refusalOfBackup = ({ message, isUnsettled }: BackupFailed) =>
  isUnsettled ? refuse("backup-unsettled") : refuse("backup-failed", { detail: message })

const copied = Effect.fnUntraced(function* (output: string, to: string) {
  yield* keepUnpruned(output)
  return yield* Effect.mapError(copy(resolve(output), to), refusalOfBackup)
}, Effect.scoped)

const runsIn = Effect.fnUntraced(function* (output: string) {
  const { ledger } = yield* Wiring
  const runs = Effect.flatMap(openedLedger, (opened) => opened.runs)
  return (yield* Effect.provide(runs, ledger(output, "read-only"))).length
})

const tell = (to: string, runs: number, { version, ...parts }: BackupHolds) => {
  const { ledger, landing, attachments, tables, other } = parts
  const bytes = Object.values(parts).reduce((sum, part) => sum + part.bytes, 0)
  return [
    `${to} holds ${counted(runs, "run")}, ${bytesText(bytes)}:`,
    `  ledger       ${bytesText(ledger.bytes)}`,
    `  landing      ${counted(landing.files, "segment")}, ${bytesText(landing.bytes)}`,
    `  attachments  ${counted(attachments.files, "document")}, ${bytesText(attachments.bytes)}`,
    `  tables       version ${version}, ${counted(tables.files, "file")}, ${bytesText(tables.bytes)}`,
    `  other        ${counted(other.files, "file")}, ${bytesText(other.bytes)}`,
  ].join("\n")
}

export const backup = Command.make(
  "backup",
  {
    folder: Argument.String("DIR").pipe(
      Argument.withDescription("A folder that is empty or does not exist yet"),
    ),
    json: jsonFlag,
  },
  Effect.fn("Backup.handle")(function* ({ folder, json }) {
    const output = yield* outputFolder
    yield* requireLedger(output)
    const to = resolve(folder)
    const refusal = refusalOfTarget(output, to)
    if (refusal !== undefined) return yield* refusal
    const holds = yield* copied(output, to)
    const runs = yield* runsIn(to)
    const problems = yield* problemsOf(to)
    if (json) yield* sayJson({ folder: to, runs, ...holds, problems })
    else {
      yield* say(tell(to, runs, holds))
      for (const { id, where, problem, next } of problems)
        yield* say(`${where}: ${withId(id, problem)}. ${next}`)
      if (problems.length === 0) yield* say("Files, ledger and tables of the copy agree.")
    }
    yield* endWith(problems.length === 0 ? exitCodes.ok : exitCodes.peopleMustAct)
  }),
).pipe(
  Command.withDescription(
    "Copies the output folder to DIR and checks the copy; a run may work meanwhile.\n\n" +
      "To restore, use the copy as the output folder. It does not know what happened\n" +
      "after it was made: bodies that landed later and were deleted at the service are\n" +
      "not in it, and logins that were rejected later are tried once more.",
  ),
  Command.withShortDescription("Copies the output folder, and checks the copy"),
  Command.withExamples([
    { command: "nightjar backup /backup/monday", description: "A copy in a new folder" },
    { command: "nightjar status --output /backup/monday", description: "Read the copy" },
  ]),
)

/**
 * `nightjar explain ID`: everything the ledger knows about one task, customer, execution or session, over
 * all runs, as a timeline. For a reason, it prints its row of the table of ends; for the id of a message,
 * the catalogue's entry.
 */
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import type { EndRow } from "../../service/EndTable.ts"
import { knownEnd, rowOf } from "../../service/Ends.ts"
import { counted } from "../../base/Text.ts"
import { TaskId } from "../../service/Ids.ts"
import type { RunId } from "../../service/Ids.ts"
import type { Recorded } from "../../ledger/Fact.ts"
import type { TaskOfRun } from "../../ledger/LedgerIds.ts"
import { entryLines, isMessageId, messageOf } from "../../messages/Catalogue.ts"
import type { MessageId } from "../../messages/Catalogue.ts"
import { endJson, renderEnd } from "../../report/RenderSummary.ts"
import { factsAbout, renderRecorded } from "../../report/Timeline.ts"
import { wrap } from "../../report/TextTable.ts"
import { jsonFlag, switchFlag } from "../CommonFlags.ts"
import { refuse } from "../Failures.ts"
import { hasLedger, openedLedger, withLedger } from "../LookAtFolder.ts"
import { Output, say, sayJson } from "../Output.ts"

interface About {
  readonly run_id: RunId | undefined
  readonly task_id: string
  readonly facts: ReadonlyArray<Recorded>
}

/** Of a customer that is in every night; `--all` shows the others too. */
const runsShownMax = 10

/** The tasks that an id names, newest first: by index, else in every run, for ids that are in no index. */
const tasksAbout = Effect.fnUntraced(function* (id: string) {
  const ledger = yield* openedLedger
  const runs = (yield* ledger.runs).map(({ fact }) => fact.run_id).toReversed()
  const run_id = runs.find((one) => id.startsWith(`${one}/`))
  const indexed =
    run_id === undefined ? yield* ledger.tasksNaming(id) : [{ run_id, task_id: TaskId.make(id) }]
  if (indexed.length > 0) return indexed.toSorted((a, b) => runs.indexOf(a.run_id) - runs.indexOf(b.run_id))
  const scanned: Array<TaskOfRun> = []
  for (const run_id of runs)
    for (const task_id of factsAbout(yield* ledger.facts(run_id), id).keys())
      scanned.push({ run_id, task_id: TaskId.make(task_id) })
  return scanned
})

const gather = Effect.fnUntraced(function* (id: string, all: boolean) {
  const ledger = yield* openedLedger
  const tasks = yield* tasksAbout(id)
  const newest = new Set(
    [...new Set(tasks.map(({ run_id }) => run_id))].slice(0, all ? Infinity : runsShownMax),
  )
  const found: Array<About> = []
  for (const task of tasks.filter(({ run_id }) => newest.has(run_id)).toReversed()) {
    const facts = yield* ledger.factsOfTask(task)
    if (facts.length > 0) found.push({ ...task, facts })
  }
  const byHand = (yield* ledger.byHand).filter(({ fact }) => "customer_id" in fact && fact.customer_id === id)
  if (byHand.length > 0) found.push({ run_id: undefined, task_id: `by hand: ${id}`, facts: byHand })
  return { found, older: new Set(tasks.map(({ run_id }) => run_id)).size - newest.size }
})

export const explain = Command.make(
  "explain",
  {
    id: Argument.String("ID").pipe(
      Argument.withDescription("A task, customer, execution, session or message id, or a reason"),
    ),
    all: switchFlag("all", "All runs, not only the ten newest that know the id"),
    json: jsonFlag,
  },
  Effect.fn("Explain.handle")(function* ({ id, all, json }) {
    if (isMessageId(id)) return yield* explainMessage(id, json)
    const end = knownEnd(id)
    // A reason can be explained without any run.
    const isLedgerMeant = end === undefined || (yield* hasLedger)
    const { found, older } = isLedgerMeant ? yield* withLedger(gather(id, all)) : { found: [], older: 0 }
    if (found.length === 0 && end !== undefined) return yield* tellEnd(id, end, json)
    if (found.length === 0) return yield* refuse("id-unknown")
    if (json)
      return yield* sayJson(
        found.map(({ facts, ...task }) => ({
          ...task,
          facts: facts.map(({ at, fact: { _tag, ...fields } }) => ({
            at: new Date(at).toISOString(),
            fact: _tag,
            ...fields,
          })),
        })),
      )
    const { out } = yield* Output
    const indent = " ".repeat(21)
    for (const { task_id, facts } of found) {
      yield* say(wrap(task_id, out.width))
      for (const recorded of facts) {
        const [time = "", text = ""] = splitAt(renderRecorded(recorded), 21)
        yield* say(
          out.width < 60
            ? wrap(`${time}${text}`, out.width, "", "  ")
            : `${time}${wrap(text, out.width - 21).replaceAll("\n", `\n${indent}`)}`,
        )
      }
      const settled = facts.findLast(({ fact }) => fact._tag === "TaskSettled")?.fact
      if (settled?._tag === "TaskSettled" && settled.outcome !== "succeeded") {
        const { means, next } = rowOf(settled.reason)
        yield* say(wrap(`${settled.reason}: ${means}`, out.width, "", "  "))
        yield* say(wrap(`Next: ${next}`, out.width, "", "  "))
      }
      yield* say("")
    }
    if (older > 0)
      yield* say(wrap(`${counted(older, "older run")} not shown: \`--all\` shows all.`, out.width))
  }),
).pipe(
  Command.withDescription("Explains any id, reason or message"),
  Command.withExamples([
    { command: "nightjar explain c-024", description: "One customer over all runs" },
    { command: "nightjar explain BLOCKED_USER", description: "What a reason means" },
    { command: "nightjar explain ledger-damaged", description: "The id in brackets at the end of a message" },
  ]),
)

const explainMessage = Effect.fnUntraced(function* (id: MessageId, json: boolean) {
  if (json) return yield* sayJson({ id, ...messageOf(id) })
  const { out } = yield* Output
  for (const line of entryLines(id)) yield* say(wrap(line, out.width, "", "  "))
})

const tellEnd = Effect.fnUntraced(function* (reason: string, end: EndRow, json: boolean) {
  if (json) return yield* sayJson(endJson(reason, end))
  const { out } = yield* Output
  yield* say(renderEnd(reason, end, out.width))
})

const splitAt = (text: string, at: number): readonly [string, string] => [text.slice(0, at), text.slice(at)]

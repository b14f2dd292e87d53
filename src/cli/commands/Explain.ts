/**
 * `nightjar explain ID`: everything the ledger knows about one task, customer, execution or session, over all
 * runs, as a timeline.
 */
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import type { RunId } from "../../contract/Ids.ts"
import type { Recorded } from "../../ledger/Fact.ts"
import { adviceOf } from "../../report/Advice.ts"
import { factsAbout, renderRecorded } from "../../report/Timeline.ts"
import { wrap } from "../../report/TextTable.ts"
import { jsonFlag } from "../CommonFlags.ts"
import { NothingThere } from "../Failures.ts"
import { openedLedger, withLedger } from "../LedgerOf.ts"
import { Output, say, sayJson } from "../Output.ts"

const gather = Effect.fnUntraced(function* (id: string) {
  const ledger = yield* openedLedger
  const found: Array<{ run_id: RunId | undefined; task_id: string; facts: ReadonlyArray<Recorded> }> = []
  for (const { fact } of yield* ledger.runs)
    for (const [task_id, facts] of factsAbout(yield* ledger.facts(fact.run_id), id))
      found.push({ run_id: fact.run_id, task_id, facts })
  const byHand = (yield* ledger.byHand).filter(({ fact }) => "customer_id" in fact && fact.customer_id === id)
  if (byHand.length > 0) found.push({ run_id: undefined, task_id: `by hand: ${id}`, facts: byHand })
  return found
})

export const explain = Command.make(
  "explain",
  {
    id: Argument.String("ID").pipe(
      Argument.withDescription("A task_id, customer_id, execution_id or session_id"),
    ),
    json: jsonFlag,
  },
  Effect.fn("Explain.handle")(function* ({ id, json }) {
    const found = yield* withLedger(gather(id))
    if (found.length === 0)
      return yield* new NothingThere({
        message: "no task, customer, execution or session has that id; `nightjar status` lists tasks",
      })
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
      if (settled?._tag === "TaskSettled" && settled.outcome !== "succeeded")
        yield* say(wrap(`Next: ${adviceOf(settled.reason)}`, out.width, "", "  "))
      yield* say("")
    }
  }),
).pipe(
  Command.withDescription("Everything known about one task, customer, execution or session, as a timeline"),
  Command.withExamples([{ command: "nightjar explain c-024", description: "One customer over all runs" }]),
)

const splitAt = (text: string, at: number): readonly [string, string] => [text.slice(0, at), text.slice(at)]

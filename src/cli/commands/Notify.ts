/**
 * `nightjar notify test JOB`: one marked notice to each receiver of the job, and what each answered. It needs
 * no output folder and no service, and starts nothing.
 */
import { Clock, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import type { Job, Receiver } from "../../jobs/Job.ts"
import { exitCodes } from "../../messages/ExitCodes.ts"
import type { Notice } from "../../report/Notice.ts"
import { table } from "../../report/TextTable.ts"
import { jsonFlag } from "../CommonFlags.ts"
import { endWith, refuse } from "../Failures.ts"
import { loadJobs } from "../Jobs.ts"
import { Output, say, sayJson } from "../Output.ts"
import { Wiring } from "../Wiring.ts"
import { toldWithin, tryOut } from "../Receivers.ts"
import { originOf } from "../Notices.ts"
import { testNotice } from "../../report/Notice.ts"

const kinds = { Url: "url", Ping: "ping", Email: "email", Command: "command" } as const

/** What one receiver answered; how long it took includes resolving its address. */
interface Answer {
  readonly receiver: string
  readonly kind: (typeof kinds)[Receiver["_tag"]]
  readonly place: string
  readonly told: boolean
  readonly answer: string
  readonly elapsed_ms: number
}

const tryReceiver = Effect.fnUntraced(function* (job: Job, receiver: Receiver, notice: Notice) {
  const begunAt = yield* Clock.currentTimeMillis
  const [told, answer] = yield* tryOut(receiver, notice).pipe(
    Effect.timeoutOrElse({ duration: toldWithin, orElse: () => Effect.fail("it did not answer in time") }),
    Effect.match({
      onSuccess: (answered) => [true, answered] as const,
      onFailure: (why) => [false, why] as const,
    }),
  )
  const elapsed_ms = (yield* Clock.currentTimeMillis) - begunAt
  const { file, line, column } = job.alarmPlaces?.get(receiver.name) ?? { file: job.path, line: 1, column: 1 }
  const place = `${file}:${line}:${column}`
  return {
    receiver: receiver.name,
    kind: kinds[receiver._tag],
    place,
    told,
    answer,
    elapsed_ms,
  } satisfies Answer as Answer
})

/** All at once: ten dead receivers take as long as one. */
const tryAll = Effect.fnUntraced(function* (job: Job) {
  const notice = testNotice(yield* originOf(job))
  const wiring = yield* Wiring
  return yield* Effect.forEach(job.notify, (receiver) => tryReceiver(job, receiver, notice), {
    concurrency: "unbounded",
  }).pipe(Effect.scoped, Effect.provide(wiring.receivers))
})

const test = Command.make(
  "test",
  {
    job: Argument.String("JOB").pipe(Argument.withDescription("The job file whose receivers are told")),
    json: jsonFlag,
  },
  Effect.fn("Notify.test")(function* ({ job: path, json }) {
    const [job] = yield* loadJobs([path])
    if (job === undefined || job.notify.length === 0) return yield* refuse("receivers-absent", { path })
    const answers = yield* tryAll(job)
    if (json) yield* sayJson(answers)
    else {
      const { out } = yield* Output
      const rows = answers.map(({ receiver, kind, place, told, answer, elapsed_ms }) => [
        told ? "told" : "failed",
        receiver,
        kind,
        `${elapsed_ms} ms`,
        told ? answer : `${place}: ${answer}`,
      ])
      yield* say(table(["", "receiver", "kind", "took", "answer"], rows, { width: out.width }))
    }
    yield* endWith(answers.every(({ told }) => told) ? exitCodes.ok : exitCodes.usage)
  }),
).pipe(
  Command.withShortDescription("Sends one marked notice to each receiver of a job"),
  Command.withDescription(
    "Sends one notice, marked as a test, to each receiver of a job, whatever its\n" +
      "`on` says, and tells what each answered and how long it took. A `ping` gets it\n" +
      "at /log, which changes no check. No address is shown. The exit code is 0 only\n" +
      "if all answered well, else 2.",
  ),
  Command.withExamples([
    { command: "nightjar notify test jobs/nightly.yaml", description: "Before the first night" },
  ]),
)

export const notify = Command.make("notify").pipe(
  Command.withDescription("Tries the receivers of a job's alarms"),
  Command.withSubcommands([test]),
)

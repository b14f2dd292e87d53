/**
 * The commands' own decisions: exit codes, selections, and text that no spreadsheet or terminal takes for an
 * order.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { describe, expect, it } from "vitest"
import { resolveFingerprint } from "../../src/cli/commands/Credentials.ts"
import { DuckDbFailed } from "../../src/base/DuckDbFailed.ts"
import { Ended, defectEnding, endingOf, refuse } from "../../src/cli/Failures.ts"
import { LandingDamaged } from "../../src/landing/Landing.ts"
import { PublishFailed } from "../../src/tables/Publisher.ts"
import { joinedExitCode, nothingToDoText } from "../../src/cli/Nights.ts"
import { Progress, type ProgressEvent } from "../../src/task/Progress.ts"
import { Steering, type NightPicture, type Order, type SteerableNight } from "../../src/task/NightPicture.ts"
import { askNight, openDesk, runningNights } from "../../src/cli/NightDesk.ts"
import { noticeOf } from "../../src/cli/ProgressDisplay.ts"
import { csvFormat, jsonFormat, tableFormat } from "../../src/cli/commands/Query.ts"
import { harmless } from "../../src/report/TextTable.ts"
import { selectTasks, tasksMeant, unknownSelected } from "../../src/cli/commands/Run.ts"
import type { QueryResult } from "../../src/base/DuckDb.ts"
import { Ledger, LedgerFailed } from "../../src/ledger/Ledger.ts"
import { commandHere, commandWork } from "../harness/CommandsHere.ts"
import { idOf, pictureOf, planned, runOf, settled } from "../report/Samples.ts"
import { anId } from "../harness/Id.ts"

const signs = [..."=+-@＝＋－＠﹦﹢﹣﹫⁼⁺⁻₌₊₋−‐‑–—➕➖"]
const unseen = [..."\t\r\n \u00a0\u3000\u200b\u2060\ufeff\u0000\u202e\u3164"]

describe("exit codes", () => {
  it("what a rerun can finish takes precedence over what people must do", () => {
    expect([[0, 0], [0, 3], [3, 4], [4, 0], [], [6, 6], [6, 0], [6, 3], [1, 4]].map(joinedExitCode)).toEqual([
      0, 3, 4, 4, 0, 6, 4, 4, 1,
    ])
  })

  it("with nothing to do says so, and how to start a night if its run began in the future [run ahead date]", () => {
    const run = runOf({ _tag: "RunEnded", run_id: anId("demo.2026-11-21"), exit_code: 0, leftovers: false })
    const told = (now: number) =>
      nothingToDoText({ run_id: run.started.run_id, night: [run], state: run }, now)
    expect([told(run.started_at), told(run.started_at - 2 * 60 * 60_000)]).toEqual([
      "demo.2026-11-21 is already finished: nothing to do (`--new` forces a further run).",
      "demo.2026-11-21 began at 2026-11-21T02:00:00.000Z, which is still to come: the clock was wrong then, " +
        "or is now. Nothing was started; if the clock is right now, `--new` starts this night.",
    ])
  })

  it("a database that another program writes to is no wrong statement [query in use]", () => {
    const message =
      'IO Error: Could not set lock on file "a.duckdb": Conflicting lock is held in python (PID 7).'
    expect(endingOf(new DuckDbFailed({ statement: "open a.duckdb", message }))).toEqual({
      exit_code: 2,
      lines: [
        `nightjar: another program has opened the database for writing: ${message} [database-in-use]`,
        "Nothing was read. End that program, or let it open the file read-only; then run the same command again.",
      ],
    })
  })

  it("an error says what was kept and what to do next; an unknown one is a defect", () => {
    expect(endingOf(new LedgerFailed({ message: "disk full\n at x" }))).toEqual({
      exit_code: 4,
      lines: [
        "nightjar: the ledger cannot be read or written: disk full [ledger-unusable]",
        "Everything landed and recorded is kept; only what was already published was deleted at the service. " +
          "Check the free space and the permissions of the output folder. Then run `nightjar run JOB` to resume.",
      ],
    })
    expect(endingOf(new Ended({ exit_code: 3 }))).toEqual({ exit_code: 3, lines: [] })
    expect(endingOf(refuse("output-not-a-folder", { output: "o" }))).toEqual({
      exit_code: 2,
      lines: [
        "nightjar: o is not a folder [output-not-a-folder]",
        "Nothing was changed. Give --output a folder that is empty or does not exist yet.",
      ],
    })
    expect(endingOf(new Error("x"))).toBeUndefined()
    expect(endingOf({ _tag: "toString" })).toBeUndefined()
  })

  it("damage is reported as damage: neither free space nor another run helps", () => {
    const lines = (failure: unknown) => endingOf(failure)?.lines
    const damaged = new PublishFailed({ message: "segment-000001.njl: wrong checksum", damaged: true })
    expect(endingOf(damaged)).toEqual({
      exit_code: 4,
      lines: [
        "nightjar: damaged data prevents publishing: segment-000001.njl: wrong checksum " +
          "[publishing-damaged]",
        "Everything landed and recorded is kept; only what was already published was deleted at the service. Run `nightjar " +
          "verify` to see what is damaged, and restore copies of it. Then `nightjar repair` derives tables that " +
          "were published, and `nightjar run JOB` publishes the rest.",
      ],
    })
    expect(lines(new LandingDamaged({ path: "p", message: "m" }))?.[1]).toBe(lines(damaged)?.[1])
    expect(lines(new PublishFailed({ message: "disk full" }))?.[1]).toContain("Check the free space")
  })

  it("a defect is reported without its data [exit 1] [promise 12]", () => {
    const { exit_code, lines } = defectEnding(new TypeError("hunter2 is not a function"))
    expect([exit_code, lines.join(" ").includes("hunter2")]).toEqual([1, false])
  })
})

describe("a command that is no run", () => {
  const freeSpace = "Check the free space and the permissions of the output folder."
  const whole =
    "The published tables are whole: those of the version before, or of the new one if it was complete."
  const again = "Run the same command again."
  const commands: ReadonlyArray<readonly [args: string, kept: string, next: string]> = [
    [
      "forget c-1 --yes",
      "What was removed stays removed, here and at the service; the rest is still there.",
      `${again.slice(0, -1)}: it finishes the removal. Until then, \`nightjar verify\` names one that has begun.`,
    ],
    ["prune", "What was removed stays removed, and the ledger records it.", again],
    ["rebuild", whole, again],
    [
      "rollback",
      whole,
      "`nightjar rollback --list` shows which one is published; `nightjar rollback --to VERSION` publishes another.",
    ],
    ["compact", "No row was changed, and a month that was not combined keeps its files.", again],
    ["repair", "Everything landed and recorded is kept, and what was repaired stays repaired.", again],
    ["documents", "Every document is in `attachments/`, and the copies that were made stay.", again],
    ["runs", "What was recorded before is kept.", "Then run the same command again."],
  ]
  const withLedger = async (args: string, ledger: Layer.Layer<Ledger, LedgerFailed>) => {
    const output = mkdtempSync(join(tmpdir(), "left-"))
    writeFileSync(join(output, "ledger.sqlite"), "")
    mkdirSync(join(output, "runs"))
    const told = await Effect.runPromise(
      commandWork([...args.split(" "), "--output", output], { ledger: () => ledger }),
    )
    rmSync(output, { recursive: true, force: true })
    return told
  }

  it.each(commands)(
    "says what `%s` leaves if the disk stops it [left by command]",
    async (args, kept, next) => {
      const full = Layer.effect(Ledger, Effect.fail(new LedgerFailed({ message: "disk full" })))
      expect(await withLedger(args, full)).toEqual({
        code: 4,
        stdout: "",
        stderr: `nightjar: the ledger cannot be read or written: disk full [ledger-unusable]\n${kept} ${freeSpace} ${next}`,
      })
    },
  )

  it.each(commands.filter(([args]) => args !== "runs"))(
    "says what `%s` leaves if a signal stops it [left by signal]",
    async (args, kept, next) => {
      const { stderr } = await withLedger(args, Layer.effect(Ledger, Effect.interrupt))
      expect(stderr).toContain(`interrupted before it was finished [command-interrupted]\n${kept} ${next}\n`)
    },
  )
})

describe("rerun", () => {
  const run = runOf(
    ...["a", "b", "c", "d"].map((id) => planned(id)),
    settled("a", "succeeded", "COMPLETED", "nobody"),
    settled("b", "failed", "TIMEOUT", "engineer"),
    settled("c", "partial", "PARTIAL", "engineer"),
  )
  const tasks = [...run.tasks.values()]
  const all = { failed: false, only: [], never: [], customers: [], engines: [], features: [] }
  const subject = (id: string) => `${id}/bank:website`
  const ids = (
    selection: Partial<Parameters<typeof selectTasks>[1]>,
    delivered = new Map<string, Set<string>>(),
  ) => selectTasks(tasks, { ...all, ...selection }, delivered).map((task) => task.planned.task_id)

  it("covers everything that did not succeed, what never ended included", () => {
    expect(ids({})).toEqual([idOf("b"), idOf("c"), idOf("d")])
  })

  it("is narrowed by outcome, reason, customer and engine", () => {
    expect(ids({ failed: true })).toEqual([idOf("b")])
    expect(ids({ only: ["PARTIAL"] })).toEqual([idOf("c")])
    expect(ids({ never: ["PARTIAL", "TIMEOUT"] })).toEqual([idOf("d")])
    expect(ids({ customers: ["a", "c"] })).toEqual([idOf("c")])
    expect(ids({ engines: ["other:website"] })).toEqual([])
    const delivered = new Map([[subject("c"), new Set(["accounts_read"])]])
    expect(ids({ features: ["accounts_read"] }, delivered)).toEqual([idOf("b"), idOf("d")])
    expect(ids({ features: ["cards_read"] }, delivered)).toEqual([])
  })

  it("means the whole night unless it names a run, and never what a later run finished", () => {
    const second = runOf(
      planned("b"),
      planned("c"),
      settled("b", "succeeded", "COMPLETED", "nobody"),
      settled("c", "failed", "TIMEOUT", "engineer"),
    )
    const left = (of: typeof run, isNamed: boolean) =>
      selectTasks(tasksMeant([run, second], of, isNamed), all, new Map()).map(
        ({ planned: { customer_id }, settled: end }) => `${customer_id} ${end?.fact.reason ?? "open"}`,
      )
    expect(left(second, false)).toEqual(["c TIMEOUT", "d open"])
    expect(left(run, true)).toEqual(["c PARTIAL", "d open"])
    expect(left(second, true)).toEqual(["c TIMEOUT"])
  })

  it("suggests names for a misspelt one", () => {
    expect(
      unknownSelected(run.started.run_id, tasks, { ...all, only: ["TIMEOT"], customers: ["a"] }),
    ).toEqual(["--only TIMEOT in demo.2026-11-21; did you mean `TIMEOUT`?"])
  })
})

it("credentials are named by first characters that match exactly one of them", () => {
  const known = ["abcdef0011", "abcdef0022", "1234567890"]
  expect(
    ["123456", "12345", "abcdef", "abcdef0022", "ffffff"].map((one) => resolveFingerprint(one, known)),
  ).toEqual(["1234567890", undefined, undefined, "abcdef0022", undefined])
})

describe("query formats", () => {
  const columns = [
    { name: "name", type: "VARCHAR" },
    { name: "amount", type: "DECIMAL(18,2)" },
  ]

  const csvOf = (excelSafe: boolean) => {
    const { begin, chunk } = csvFormat(columns, excelSafe)
    const rows = [
      ["=1+1", "-5.00"],
      ["+34 600 123 123", null],
      ['a,"b"\n', "1.00"],
    ]
    return begin + chunk(rows)
  }

  it("CSV has every value as it is and quotes what needs it; for spreadsheets, no text begins with a formula", () => {
    const last = '"a,""b""\n",1.00\r\n'
    expect(csvOf(false)).toBe(`name,amount\r\n=1+1,-5.00\r\n+34 600 123 123,\r\n${last}`)
    expect(csvOf(true)).toBe(`name,amount\r\n'=1+1,-5.00\r\n'+34 600 123 123,\r\n${last}`)
  })

  it("no cell ever begins with = + - @ or a control character [promise 13 spreadsheets]", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc
            .tuple(
              fc.array(fc.constantFrom(...unseen), { maxLength: 3 }),
              fc.constantFrom(...signs),
              fc.string({ unit: "binary" }),
            )
            .map(([before, sign, rest]) => before.join("") + sign + rest),
        ),
        (text) => {
          const [first = ""] = harmless(text)
          expect([...signs, "\t", "\r", "\n"]).not.toContain(first)
          expect(unseen.some((one) => harmless(text).startsWith(one) && runs(text))).toBe(false)
          expect(["", "'"].map((mark) => mark + text)).toContain(harmless(text))
        },
      ),
      { numRuns: Number(process.env["NIGHTJAR_CELLS"] ?? 2_000) },
    )
  })

  it("a character that a spreadsheet might take for a sign is recognised, whatever comes before it", () => {
    const shown = "\n=1+1§＝1+1§\u200b=1§\ufeff=1§ \t＋1§\u00a0－1§﹫SUM(1)§⁼1§−1§\u3164=1".split("§")
    expect(shown.map(harmless)).toEqual(shown.map((text) => `'${text}`))
    const plain = ["", " ", "a=1", "1-2", "’=", "ñ", "\u200b", "C-1", "Calle 1\n- 2º", "#1", "(=1)"]
    expect(plain.map(harmless)).toEqual(plain)
  })

  it("JSON is one valid array over any number of chunks", () => {
    const [a, b, c] = [
      ["a", 1],
      ["b", 2],
      ["c", 3],
    ] as const
    for (const chunks of [[], [[a]], [[a], [b, c]]]) {
      const format = jsonFormat(columns)
      const text = format.begin + chunks.map((rows) => format.chunk(rows)).join("") + format.end()
      expect(JSON.parse(text)).toEqual(chunks.flat().map(([name, amount]) => ({ name, amount })))
    }
  })

  it("[decision aligned rows] a table prints its header once, aligns small chunks, and counts its rows", () => {
    const printed = (...chunks: ReadonlyArray<QueryResult["rows"]>) => {
      const format = tableFormat(columns, Infinity)
      return format.begin + chunks.map(format.chunk).join("") + format.end()
    }
    expect(printed([["a", "1.00"]], [["longer", "200.00"]])).toBe(
      "name    amount\na         1.00\nlonger  200.00\n(2 rows)\n",
    )
    const large = Array.from({ length: 2048 }, () => ["a", "1.00"])
    const lines = printed(large, [["longer", "2.00"]]).split("\n")
    expect([lines[0], lines.at(-4), ...lines.slice(-3)]).toEqual([
      "name  amount",
      "a       1.00",
      "longer    2.00",
      "(2049 rows)",
      "",
    ])
    expect(tableFormat(columns, Infinity).end()).toBe("name  amount\n(no rows)\n")
  })
})

/** As people see a cell: what cannot be seen left out, then whether a sign stands first. */
const runs = (text: string): boolean => {
  let rest = text
  for (let cut = true; cut;) {
    const one = unseen.find((each) => rest.startsWith(each))
    cut = one !== undefined
    rest = rest.slice(one?.length ?? 0)
  }
  return signs.some((sign) => rest.startsWith(sign))
}

describe("progress", () => {
  it("says once how many secrets of logins are written out in files", () => {
    const planned = { _tag: "Planned", run_id: anId("demo.1") } as const
    expect([noticeOf(planned), noticeOf({ ...planned, writtenOut: 3 })]).toEqual([
      undefined,
      [
        "Warn",
        "warning: secrets of logins are written out in files (3 times): use env:, file: or exec:; " +
          "`nightjar plan` says where",
      ],
    ])
  })
})

describe("the desk of a running night", () => {
  const run_id = anId("demo.1")
  const picture = pictureOf("demo.1")
  const published: ProgressEvent = {
    _tag: "Noted",
    fact: { _tag: "InterimPublished", run_id, version: 7, tasks: 39, of: 40 },
  }

  it("tells whoever looks on what was published last while the run continues, until the next one begins", async () => {
    const output = mkdtempSync(join(tmpdir(), "desk-"))
    const told: Array<string> = []
    const hear = (event: ProgressEvent) =>
      Effect.sync(() => event._tag === "Stage" && void told.push(event.stage))
    const seen = Effect.gen(function* () {
      const { tell } = yield* Progress
      const looked: Array<NightPicture | undefined> = []
      const look = Effect.gen(function* () {
        looked.push((yield* runningNights(output))[0])
      })
      const steer = () => ({ _tag: "Steered" as const, changed: false, night: picture })
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* (yield* Steering).hold({ look: () => picture, steer })
          yield* look
          yield* tell({ ...published, fact: { _tag: "InterimRefused", run_id, message: "full" } })
          yield* look
          yield* tell(published)
          yield* look
        }),
      )
      yield* tell({ _tag: "Stage", run_id, stage: "publishing" })
      yield* tell({ _tag: "Building", done: 12, runs: 400 })
      yield* look
      yield* tell({ _tag: "Stage", run_id, stage: "deleting" })
      yield* look
      yield* tell({ _tag: "Planned", run_id })
      yield* (yield* Steering).hold({ look: () => picture, steer })
      yield* look
      return looked
    })
    const looked = await Effect.runPromise(
      openDesk(output).pipe(
        Effect.flatMap(({ join: enter }) => enter({ tell: (event) => Effect.asVoid(hear(event)) })),
        Effect.flatMap((joined) => Effect.provide(seen, joined)),
        Effect.scoped,
        Effect.provide(NodeServices.layer),
      ),
    )
    rmSync(output, { recursive: true, force: true })
    const last = { ...picture, published: { at: 2_000, version: 7, tasks: 39 } }
    const built = { done: 12, runs: 400 }
    const stages = [
      { ...last, stage: "publishing", built },
      { ...last, stage: "deleting" },
    ]
    expect(looked).toEqual([picture, picture, last, ...stages, picture])
    expect(told).toEqual(["executing", "publishing", "deleting", "executing"])
  })

  it("shows all nights that go on, gives an order to all of them, and to each within its own job's limits", async () => {
    const output = mkdtempSync(join(tmpdir(), "desk-"))
    const asked: Array<readonly [string, Order]> = []
    const nightOf = (name: string, per_engine: number): SteerableNight => {
      const night = { ...picture, run_id: name, job_limits: { max_in_flight: 10, per_engine } }
      return {
        look: () => night,
        steer: (order) => {
          asked.push([name, order])
          return { _tag: "Steered", changed: name === "a.1", night }
        },
      }
    }
    const seen = Effect.gen(function* () {
      const { join: enter } = yield* openDesk(output)
      for (const [name, limit] of [["a.1", 4] as const, ["b.1", 8] as const])
        yield* Effect.flatMap(enter({ tell: () => Effect.void }), (joined) =>
          Effect.provide(
            Effect.flatMap(Steering, ({ hold }) => hold(nightOf(name, limit))),
            joined,
          ),
        )
      const looked = (yield* runningNights(output)).map((one) => one.run_id)
      const limited = yield* askNight(output, { _tag: "Limit", per_engine: 6 })
      const above = yield* askNight(output, { _tag: "Limit", per_engine: 9 })
      return { looked, limited, above }
    })
    const { looked, limited, above } = await Effect.runPromise(
      seen.pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
    )
    rmSync(output, { recursive: true, force: true })
    expect(looked).toEqual(["a.1", "b.1"])
    expect(limited).toMatchObject({
      _tag: "Steered",
      nights: [
        { changed: true, night: { run_id: "a.1" } },
        { changed: false, night: { run_id: "b.1" } },
      ],
    })
    expect(above).toMatchObject({ _tag: "Steered" })
    expect(asked).toEqual([
      ["a.1", { _tag: "Limit", per_engine: 4 }],
      ["b.1", { _tag: "Limit", per_engine: 6 }],
      // Above every job's own: whoever asks is refused by each night itself.
      ["a.1", { _tag: "Limit", per_engine: 9 }],
      ["b.1", { _tag: "Limit", per_engine: 9 }],
    ])
  })

  it("that cannot be asked is told as it is: none, one that hangs, or one that may obey [order unanswered]", async () => {
    const output = mkdtempSync(join(tmpdir(), "desk-"))
    const told = [await commandHere("pause", "--output", output)]
    for (const behave of [
      (socket: Socket) => socket.end(),
      (socket: Socket) => {
        socket.write("\n")
        socket.on("data", () => socket.end())
      },
    ]) {
      const server = createServer(behave).listen(join(output, "nightjar.sock"))
      told.push(await commandHere("pause", "--output", output))
      await new Promise((resolve) => server.close(resolve))
    }
    rmSync(output, { recursive: true, force: true })
    expect(told.map(({ code, stderr }) => [code, ...stderr.replaceAll(output, "out").split("\n")])).toEqual([
      [
        2,
        "nightjar: no run is executing in out [night-not-running]",
        "Nothing was changed. `nightjar runs` lists all runs; --output names another folder.",
      ],
      [
        2,
        "nightjar: the run in out did not answer within 5 seconds [night-silent]",
        "Nothing was changed: the run was not told, so it does not obey later either. Check whether its process is " +
          "stopped or the machine is overloaded; then run the same command again.",
      ],
      [
        4,
        "nightjar: the run in out was told, and did not answer within 5 seconds [night-unanswered]",
        "It is not known whether the run obeys. Run the same command again: once the run answers, it says whether " +
          "that was already so.",
      ],
    ])
  })
})

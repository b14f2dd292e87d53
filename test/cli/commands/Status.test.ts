/** What `status` and `runs` say of runs that have not ended: whether a process works on them, or they were cut off. */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { Clock, Effect } from "effect"
import { describe, expect, it } from "vitest"
import { FileCalls } from "../../../src/base/DurableFile.ts"
import { lockFolder } from "../../../src/base/FolderLock.ts"
import { serveLines } from "../../../src/base/LineSocket.ts"
import type { Fact } from "../../../src/ledger/Fact.ts"
import { Ledger } from "../../../src/ledger/Ledger.ts"
import { commandHere } from "../../harness/CommandsHere.ts"
import { anId } from "../../harness/Id.ts"
import { sharedFolder } from "../../harness/Folder.ts"
import { pictureOf } from "../../report/Samples.ts"
import { aFact, runStarted } from "../../harness/Facts.ts"

const root = sharedFolder()

/** One task in flight on `bank:website`. */
const begun = (run_id: string, more: Parameters<typeof runStarted>[1] = {}): ReadonlyArray<Fact> => {
  const run = { run_id: anId(run_id) }
  const [job = ""] = run_id.split(".")
  const attempt = { ...run, task_id: anId(`${run_id}/c-1/bank:website`), attempt: 1 }
  return [
    runStarted(run_id, { job_path: `jobs/${job}.yaml`, ...more }),
    aFact("TaskPlanned", {
      ...run,
      task_id: attempt.task_id,
      customer_id: "c-1",
      engine_reference: "bank:website",
    }),
    { _tag: "StartIntended", ...attempt, external_execution_id: `nj-${run_id}`, probe: false },
    { _tag: "StartAnswered", ...attempt, answer: "accepted", execution_id: anId(`e-${job}`) },
  ]
}
const ended = (run_id: string): Fact => aFact("RunEnded", { run_id })

let folders = 0
const folderWith = async (...facts: ReadonlyArray<Fact>): Promise<string> => {
  const output = join(root, `output-${folders++}`)
  mkdirSync(output, { mode: 0o700 })
  const append = Effect.flatMap(Ledger, (ledger) => ledger.append(facts))
  await Effect.runPromise(Effect.provide(append, Ledger.layer({ path: join(output, "ledger.sqlite") })))
  return output
}

/** While another process works in the folder: on these runs, or on none yet. */
const besideWork = <A>(output: string, runs: ReadonlyArray<string>, ask: () => Promise<A>) => {
  const answer = { _tag: "Nights", nights: runs.map((run_id) => pictureOf(run_id)) }
  return Effect.gen(function* () {
    yield* lockFolder(join(output, "run.lock"))
    yield* serveLines(output, "nightjar.sock", () => JSON.stringify(answer))
    return yield* Effect.promise(ask)
  }).pipe(Effect.scoped, Effect.provideService(FileCalls, FileCalls.defaultValue()), Effect.runPromise)
}

const spain = "spain.2026-11-21"
const status = async (output: string, ...more: ReadonlyArray<string>) => {
  const { code, stdout } = await commandHere("status", ...more, "--output", output)
  expect(code).toBe(0)
  return stdout.replaceAll(/\d{4}-\d\d-\d\dT\S+Z/g, "<TIME>").replaceAll(/\(\d+ m?s ago\)/g, "(<AGO>)")
}
const json = async (output: string) =>
  JSON.parse((await commandHere("status", "--json", "--output", output)).stdout) as Record<string, unknown>
/** What stands below the summary. */
const end = (text: string): ReadonlyArray<string> =>
  text
    .slice(text.indexOf("[executions-in-flight]"))
    .split("\n")
    .slice(1)
    .filter((line) => line !== "")

const interrupted = (output: string, job: string, run_id: string) => [
  `${run_id} was interrupted: no process has worked on it since <TIME> (<AGO>).`,
  `In flight: 1 task (1 on bank:website), 1 execution open at the service (e-${job} of c-1).`,
  "This command resumes it; after the job's deadline, it only collects what is in flight:",
  `  nightjar run jobs/${job}.yaml --output ${output}`,
]

describe("the status of a run that has not ended", () => {
  it("is interrupted if no process works in the folder: since when, what is in flight, and what resumes it", async () => {
    const published = { run_id: anId(spain), version: 7, tasks: 3, of: 40 }
    const output = await folderWith(...begun(spain), { _tag: "InterimPublished", ...published })
    const text = await status(output)
    expect(end(text)).toEqual([
      "3 of 40 tasks are in the tables, published as version 7 at <TIME> while the run went on.",
      ...interrupted(output, "spain", spain),
    ])
    expect(text).not.toMatch(/action needed|from the service/i)
    expect(await json(output)).toMatchObject({
      running: false,
      also_interrupted: [],
      interrupted: {
        in_flight: [{ engine_reference: "bank:website", tasks: 1 }],
        open_executions: [{ customer_id: "c-1", execution_id: "e-spain" }],
        is_resumed: true,
      },
    })
    expect((await commandHere("runs", "--output", output)).stdout).toMatch(/ {2}interrupted$/m)
  })

  it("is running once another process has resumed it, and not known while that executes nothing yet", async () => {
    const output = await folderWith(...begun(spain))
    await besideWork(output, [spain], async () => {
      expect(end(await status(output))).toEqual([
        `${spain} is running: \`nightjar status --watch\` follows it.`,
      ])
      expect(await json(output)).toMatchObject({ running: true, interrupted: null })
      expect((await commandHere("runs", "--output", output)).stdout).toMatch(/ {2}running$/m)
    })
    await besideWork(output, [], async () => {
      expect(end(await status(output))).toEqual([
        `Another process is working in this output folder, and may be about to resume ${spain}.`,
      ])
      expect(await json(output)).toMatchObject({ running: false, interrupted: null, also_interrupted: [] })
      expect((await commandHere("runs", "--output", output)).stdout).toMatch(/ {2}not ended$/m)
    })
  })

  it("is interrupted while the other process executes runs of other jobs, which it names", async () => {
    const output = await folderWith(...begun("chile.2026-11-21"), ...begun(spain))
    await besideWork(output, ["chile.2026-11-21"], async () => {
      expect(end(await status(output))).toEqual([
        "Another process is working in this output folder, on chile.2026-11-21.",
        ...interrupted(output, "spain", spain),
      ])
    })
  })

  it("names the other runs of the folder that were cut off, of older nights and other jobs", async () => {
    const old = "spain.2026-11-20"
    const output = await folderWith(
      ...begun(old),
      ...begun("chile.2026-11-21"),
      ...begun(spain),
      ended(spain),
    )
    const text = await status(output)
    expect(end(text).at(-1)).toBe(
      `2 more runs were interrupted: chile.2026-11-21, ${old}. \`nightjar status RUN\` shows what is in flight.`,
    )
    expect(await json(output)).toMatchObject({
      interrupted: null,
      also_interrupted: ["chile.2026-11-21", old],
    })
    expect(end(await status(output, old)).at(-2)).toBe(
      "It is too old to be resumed. This command collects what is in flight for the job's next run:",
    )
  })

  it("is too old to be resumed if it is a rerun of an older night, however late it began [promise 16 rerun age]", async () => {
    const again = { run_date: "2026-11-21", parent: anId(spain) }
    const told = async (hours: number) => {
      const then = Date.now() - hours * 3_600_000
      const appended = (...facts: ReadonlyArray<Fact>) =>
        Effect.flatMap(Ledger, (ledger) => ledger.append(facts))
      const night = Effect.updateService(appended(runStarted(spain), ended(spain)), Clock.Clock, (clock) => ({
        ...clock,
        currentTimeMillis: Effect.succeed(then),
      }))
      const output = await folderWith()
      const both = Effect.andThen(night, appended(...begun(`${spain}.2`, again)))
      await Effect.runPromise(Effect.provide(both, Ledger.layer({ path: join(output, "ledger.sqlite") })))
      return await status(output)
    }
    expect(await told(21)).toContain("\nIt is too old to be resumed. This command collects")
    expect(await told(19)).toContain("\nThis command resumes it;")
  })
})

describe("of a long run", () => {
  const run = { run_id: anId("long.2026-11-20") }
  const taskOf = (n: number): ReadonlyArray<Fact> => {
    const task_id = anId(`long.2026-11-20/c-${n}/bank:website`)
    const planned = { customer_id: anId(`c-${n}`), engine_reference: anId("bank:website"), features: [] }
    const isFine = n % 3 === 0
    const verdict = isFine
      ? { outcome: "succeeded", reason: "COMPLETED", who_acts: "nobody" }
      : { outcome: "failed", reason: "TIMEOUT", who_acts: "engineer" }
    return [
      { _tag: "TaskPlanned", ...run, task_id, ...planned },
      ...(n === 1 ? [] : [{ _tag: "TaskSettled", ...run, task_id, ...verdict } as Fact]),
    ]
  }
  const folder = () =>
    folderWith(
      ...begun("long.2026-11-20").slice(0, 1),
      ...Array.from({ length: 90 }, (_, n) => taskOf(n)).flat(),
    )
  const linesOf = async (output: string, ...flags: ReadonlyArray<string>) => {
    const { stdout } = await commandHere("status", ...flags, "--output", output)
    return stdout.split("\n").filter((line) => line.includes("bank:website  "))
  }

  it("shows those who need somebody on one screen and how many more there are; or all, or those that are asked for", async () => {
    const output = await folder()
    const ask = (...flags: ReadonlyArray<string>) => linesOf(output, ...flags)
    expect(await ask()).toHaveLength(20)
    expect(await ask("--all")).toHaveLength(90)
    expect(await ask("--outcome", "succeeded")).toHaveLength(30)
    expect(await ask("--outcome", "open")).toEqual([expect.stringMatching(/^c-1 .* open /)])
    const few = ["--customer", "c-2", "--customer", "c-3", "--engine", "bank:website"]
    expect(await ask(...few)).toHaveLength(2)
    const failed = await commandHere("status", "--json", ...few, "--outcome", "failed", "--output", output)
    expect(JSON.parse(failed.stdout).tasks).toMatchObject([{ customer_id: "c-2" }])
    const { stdout } = await commandHere("status", "--output", output)
    expect(stdout).toContain(
      "39 more tasks need somebody, and 31 tasks need nobody: `nightjar status --all` lists them.",
    )
  })
})

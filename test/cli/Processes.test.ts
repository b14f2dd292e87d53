/**
 * The program as its caller meets it: exit codes, what goes to which stream, files and their modes, the lock; and what
 * signals do to a real process.
 */
import { anId } from "../harness/Id.ts"
import { spawn } from "node:child_process"
import {
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { hostname } from "node:os"
import { join } from "node:path"
import { beforeAll, describe, expect, it, vi } from "vitest"
import { Effect, Exit, Scope } from "effect"
import { command as main, program } from "../acceptance/BuiltCommand.ts"
import { DurableFiles, machineCalls } from "../../src/base/DurableFile.ts"
import { lockFolder } from "../../src/base/FolderLock.ts"
import { claimFolder } from "../../src/cli/OutputFolder.ts"
import { Ledger } from "../../src/ledger/Ledger.ts"
import { openLedger } from "../../src/ledger/LedgerSchema.ts"
import { plainEnvironment } from "../harness/Environment.ts"
import { startHere, type Ended, type Running } from "../harness/ProgramHere.ts"
import { sharedFolder } from "../harness/Folder.ts"

const root = sharedFolder()
const output = join(root, "output")
const canary = "canary-5f2c9d"

const environment = { ...plainEnvironment, NIGHTJAR_OUTPUT: output, DEMO_PASSWORD: canary }
const nightjar = (...args: ReadonlyArray<string>) => startHere(args, { environment, folder: root }).ended
/** As the streams name files, which is from the folder. */
const fromRoot = (text: string): string => text.replaceAll(`${root}/`, "")

const job = (name: string, usernames: ReadonlyArray<string>, speed = 2_000) => {
  const customers = usernames.map(
    (username, index) =>
      `  - { id: k-${index + 1}, parameters: { username: ${username}, password: "env:DEMO_PASSWORD" } }`,
  )
  writeFileSync(
    join(root, `${name}.yaml`),
    `name: ${name}
service: { sandbox: { seed: 3, speed: ${speed} } }
polling: { min: 1 second, max: 20 seconds }
engines: [sandbox-bank:website]
record_schemas: []
customers:
${customers.join("\n")}
`,
  )
  return `${name}.yaml`
}

const mode = (path: string) => statSync(join(output, path)).mode & 0o777

const runAway = (name: string, secret: string) => {
  const path = job(name, ["ok"])
  const service = `{ base_url: http://127.0.0.1:9/api, flows_url: http://127.0.0.1:9/flows, app_secret: env:${secret} }`
  const text = readFileSync(join(root, path), "utf8")
  writeFileSync(join(root, path), text.replace(/^service: .*$/m, `service: ${service}`))
  return nightjar("run", path, "--output", join(root, name))
}
/** It is tried for some seconds, while other tests go on. */
let away: Promise<Ended>
beforeAll(() => {
  away = runAway("away", "DEMO_PASSWORD")
})

describe("a run", () => {
  let first: Ended
  let again: Ended
  beforeAll(async () => {
    const path = job("small", ["ok+queue-5+run-9+records-4", "end-BLOCKED_USER+queue-5+run-9"])
    first = await nightjar("run", path)
    // As if the process had been killed once the run had ended, before its summary or while it wrote the report.
    const [run = ""] = readdirSync(join(output, "runs"))
    for (const name of ["summary.json", "report.html"]) rmSync(join(output, "runs", run, name))
    renameSync(join(output, "runs", run, "worklist.csv"), join(output, "runs", run, "worklist.csv.tmp"))
    again = await nightjar("run", path, "--json")
  }, 120_000)
  const run_id = () => (JSON.parse(again.stdout) as ReadonlyArray<{ run_id: string }>)[0]?.run_id ?? ""

  it("says where its summary is if it could not be printed, and ends with its exit code [summary lost]", async () => {
    const surroundings = { environment, folder: root, isFull: true }
    expect(await startHere(["run", "small.yaml", "--no-progress"], surroundings).ended).toEqual({
      code: 3,
      stdout: "",
      stderr:
        "warning: not everything could be printed (no room). What the command did is recorded, " +
        "and its exit code does not change. Make room. `nightjar status` shows a run's summary, which is also in its " +
        "`summary.json` below `runs/`. [summary-lost]\n",
    })
  })

  it("prints its summary to stdout and its progress to stderr, and ends with its exit code", () => {
    expect(first.code).toBe(3)
    expect(first.stdout).toMatch(/2 tasks: 1 succeeded, 1 failed\n.*BLOCKED_USER.*Executions: 2 deleted/s)
    // On a slow machine further lines come in between.
    expect(first.stderr).toMatch(
      /^(?:\S+ executing, \d\/2 done.*\n)+(?:\S+ publishing, 2\/2 done.*\n)+(?:\S+ deleting, 2\/2 done.*\n)+$/,
    )
  })

  it("is not repeated: a second call returns the same exit code and starts nothing", () => {
    expect([again.code, again.stderr]).toEqual([3, ""])
    expect(JSON.parse(again.stdout)).toMatchObject([{ nothing_to_do: true, executions: 2, exit_code: 3 }])
  })

  it("leaves a private folder with log, summary and report, also one that was cut off, and no secret in them", () => {
    const folder = `runs/${run_id()}`
    const paths = readdirSync(output, { recursive: true, encoding: "utf8" })
    const isFolder = (path: string) => statSync(join(output, path)).isDirectory()
    expect(paths.filter((path) => mode(path) !== (isFolder(path) ? 0o700 : 0o600))).toEqual([])
    const files = ["log.ndjson", "summary.json", "report.html", "worklist.csv"].map(
      (name) => `${folder}/${name}`,
    )
    expect(paths).toEqual(expect.arrayContaining(files))
    expect(readdirSync(join(output, folder)).filter((name) => name.endsWith(".tmp"))).toEqual([])
    const log = readFileSync(join(output, folder, "log.ndjson"), "utf8")
      .trim()
      .split("\n")
    expect(JSON.parse(log[0] ?? "")).toMatchObject({ fact: "RunStarted", run_id: run_id(), job: "small" })
    expect(log.slice(-2).map((line) => JSON.parse(line))).toMatchObject([
      { fact: "RunEnded", exit_code: 3 },
      { fact: "OutcomePublished" },
    ])
    const all = [
      ...paths.filter((path) => !isFolder(path)).map((path) => readFileSync(join(output, path), "latin1")),
      first.stdout,
      first.stderr,
    ]
    expect(all.filter((text) => text.includes(canary))).toEqual([])
  })

  it("writes its report again if that is older than the run, and only then", async () => {
    const page = join(output, "runs", run_id(), "report.html")
    const whole = readFileSync(page, "utf8")
    const written = () => [readFileSync(page, "utf8") === whole, statSync(page).ino]
    const before = written()
    await nightjar("run", "small.yaml")
    expect(written()).toEqual(before)
    // As if the run had gone on since, and the process had been killed before it wrote the page again.
    const older = (_: string, newest: string) => `data-newest-fact="${Number(newest) - 1}"`
    writeFileSync(page, whole.replace(/data-newest-fact="(\d+)"/, older))
    expect(written()[0]).toBe(false)
    await nightjar("run", "small.yaml")
    expect(written()[0]).toBe(true)
  })
})

describe("the report of a run", () => {
  it("is written at the run's end and again on request, with what a job shares open to its group; costs a warning where it cannot be [share group log]", async () => {
    const path = job("reported", ["ok+queue-1+run-2", "end-TIMEOUT+queue-1+run-2"])
    writeFileSync(join(root, path), `${readFileSync(join(root, path), "utf8")}output: { share: group }\n`)
    const folder = join(root, "shared")
    expect((await nightjar("run", path, "--no-progress", "--output", folder)).code).toBe(3)
    const run = readdirSync(join(folder, "runs"))[0] ?? ""
    const files = ["report.html", "worklist.csv"].map((name) => join(folder, "runs", run, name))
    const modesIn = (...names: ReadonlyArray<string>) =>
      names.map((name) => statSync(join(folder, "runs", run, name)).mode & 0o777)
    const modes = () => modesIn("report.html", "worklist.csv")
    expect(modes()).toEqual([0o640, 0o640])
    expect(modesIn("summary.json", "log.ndjson")).toEqual([0o640, 0o600])
    const night = `tables/runs/run_date=${run.slice("reported.".length)}`
    const [file = ""] = readdirSync(join(folder, night))
    const shared = [".", "tables", night, "nightjar.duckdb", `${night}/${file}`]
    const modeOf = (path: string) => statSync(join(folder, path)).mode & 0o777
    expect(shared.map(modeOf)).toEqual([0o750, 0o750, 0o750, 0o640, 0o640])
    expect(["landing", "ledger.sqlite"].map(modeOf)).toEqual([0o700, 0o600])
    const [page, worklist] = files.map((file) => readFileSync(file, "utf8"))
    expect([page?.includes(`<title>${run}</title>`), worklist?.split("\r\n").length]).toEqual([true, 3])
    expect(page?.split("Engines over the last runs").at(-1)).toContain("sandbox-bank:website")
    for (const file of files) rmSync(file)
    expect(await nightjar("report", "--output", folder)).toEqual({
      code: 0,
      stdout: fromRoot(`${files.join("\n")}\n`),
      stderr: "",
    })
    expect([modes(), readFileSync(files[0] ?? "", "utf8")]).toEqual([[0o640, 0o640], page])
    expect(JSON.parse((await nightjar("report", run, "--json", "--output", folder)).stdout)).toEqual({
      run_id: run,
      report: fromRoot(files[0] ?? ""),
      worklist: fromRoot(files[1] ?? ""),
      worklist_rows: 1,
    })
    const report = join(folder, "runs", `${run}.2`, "report.html")
    mkdirSync(join(report, "in-the-way"), { recursive: true })
    // A rerun has the date of its night, however late the embedded service's clock has become.
    const rerun = await nightjar("rerun", "--no-progress", "--output", folder)
    expect([rerun.code, rerun.stdout.includes("1 task: 1 failed")]).toEqual([3, true])
    expect(rerun.stderr).toBe(
      fromRoot(
        `warning: ${report} could not be written: the output folder cannot be written: ${report}: ` +
          "cannot rename: illegal operation on a directory (EISDIR); the file is as it was before [output-unwritable] " +
          "[report-unwritten]\n",
      ),
    )
    rmSync(join(folder, "nightjar.duckdb"))
    writeFileSync(join(folder, "nightjar.duckdb"), "no database")
    expect((await nightjar("report", run, "--output", folder)).code).toBe(0)
    expect(readFileSync(files[0] ?? "", "utf8")).toContain("The published tables could not be read.")
  })
})

it("a reason that is explained needs no run, and gives way to an id with the same spelling", async () => {
  const folder = join(root, "explained")
  const before = await nightjar("explain", "PARTIAL", "--output", folder)
  expect([before.code, before.stdout.split(":", 1)]).toEqual([0, ["PARTIAL"]])
  const run_id = anId("job.2026-11-21")
  const task_id = anId(`${run_id}/PARTIAL/bank`)
  const ids = { run_id, task_id, customer_id: anId("PARTIAL"), engine_reference: anId("bank") }
  const written = Effect.flatMap(Ledger, ({ append }) =>
    append([
      { _tag: "RunStarted", run_id, job: "job", job_path: "j", run_date: "2026-11-21", tool_version: "0" },
      { _tag: "TaskPlanned", ...ids, features: [] },
    ]),
  )
  mkdirSync(folder)
  const ledger = openLedger({ path: join(folder, "ledger.sqlite") })
  await Effect.runPromise(Effect.provide(written, Ledger.layerOver(ledger)))
  expect((await nightjar("explain", "PARTIAL", "--output", folder)).stdout).toContain(task_id)
})

describe("wrong usage", () => {
  it("exits 2, and says on stderr alone what is wrong, in plain words, and what was probably meant [exit 2]", async () => {
    writeFileSync(join(root, "a-file"), "")
    mkdirSync(join(root, "begun"))
    openLedger({ path: join(root, "begun/ledger.sqlite") }).close()
    const firstLineOf = async (...args: ReadonlyArray<string>) => {
      const { code, stdout, stderr } = await nightjar(...args)
      return [code, stdout, stderr.split("\n", 1)[0]]
    }
    const refused = (line: string) => [2, "", `nightjar: ${line}`]
    expect(
      await Promise.all([
        firstLineOf("rnu"),
        firstLineOf("run", "x.yaml", "--outptu", "out"),
        firstLineOf("run", "x.yaml", "--log-levl", "warn"),
        firstLineOf("sandbox", "--seed", "x"),
        firstLineOf("sandbox", "--seed", "1.5"),
        firstLineOf("sandbox", "--seed"),
        firstLineOf("sandbox", "--speed", "1e15"),
        firstLineOf("query", " ;\n"),
        firstLineOf("status", "--output", "a-file"),
        firstLineOf("query", "SELECT 1", "--output", "a-file"),
        firstLineOf("backup", "a-file", "--output", "begun"),
        firstLineOf("validate", "gone.yaml"),
        firstLineOf(
          "engines",
          "list",
          "--base-url",
          "http://far.example/api",
          "--app-secret",
          "env:DEMO_PASSWORD",
        ),
      ]),
    ).toEqual([
      refused("unknown command `rnu`; did you mean `run` or `runs`? [usage-wrong]"),
      refused("unknown flag --outptu; did you mean `--output`? [usage-wrong]"),
      refused("unknown flag --log-levl; did you mean `--log-level`? [usage-wrong]"),
      refused("--seed: expected a number [usage-wrong]"),
      refused("--seed: expected a whole number [usage-wrong]"),
      refused("--seed: expected a whole number [usage-wrong]"),
      refused("--speed: expected a number above 0, up to 1000000 [usage-wrong]"),
      refused("no query was given [query-missing]"),
      refused("a-file is not a folder [output-not-a-folder]"),
      refused("a-file is not a folder [output-not-a-folder]"),
      refused(`a-file is not an empty folder [backup-not-empty]`),
      [2, "", "gone.yaml:1:1: the job file cannot be read (there is no such file)"],
      [2, "", expect.stringContaining("base_url: expected an https:// address")],
    ])
    const limit =
      "a limit is max_in_flight=N or per_engine=N, each at most once, with N from 1 to 100000 [limit-invalid]"
    for (const [asked, line] of [
      ...["status", "explain x", "rerun --dry-run"].map(
        (args) => [args, "no run has been started in"] as const,
      ),
      ...["infer", "query SELECT"].map((args) => [args, "nothing is published in"] as const),
    ])
      expect(await firstLineOf(...asked.split(" "), "--output", "nowhere")).toEqual(
        refused(`${line} nowhere yet [${line.startsWith("no run") ? "nothing-ran" : "nothing-published"}]`),
      )
    for (const given of ["per_engine", "speed=3", "per_engine=1 per_engine=2"])
      expect(await firstLineOf("limit", ...given.split(" "))).toEqual(refused(limit))
    for (const time of ["0 seconds", "soon", "60s", "5", "-1 hours", "25 hours", "Infinity days"])
      expect(await firstLineOf("run", "x.yaml", `--wait=${time}`)).toEqual([
        2,
        "",
        expect.stringContaining("such as '60 seconds' or '8 hours'"),
      ])
  })
})

it("a service that cannot be reached ends a run with 6 before anything is started, and a secret that is not set with 2 before it is asked [exit 6]", async () => {
  const unset = await runAway("unset", "NOT_SET")
  expect([unset.code, unset.stderr.includes("NOT_SET")]).toEqual([2, true])
  const { code, stderr } = await away
  expect([code, stderr.includes(canary)]).toEqual([6, false])
})

describe("an output folder that cannot be used", () => {
  it("ends a run that says that nothing was started, to the receivers of its job too [nothing begun]", async () => {
    const path = job("unopened", ["ok"])
    const [folder, told] = [join(root, "unopened"), join(root, "unopened.json")]
    claimFolder(new DurableFiles(machineCalls), folder, 0o700)
    mkdirSync(join(folder, "run.lock"))
    const receiver = JSON.stringify(["sh", "-c", `cat > ${told}`])
    writeFileSync(join(root, path), `${readFileSync(join(root, path))}notify: [{ command: ${receiver} }]\n`)
    const { code, stderr } = await nightjar("run", path, "--output", folder)
    const left =
      "Nothing was started. Check the free space and the permissions of the output folder. " +
      "Then run the same command again."
    expect([code, stderr.split("\n").slice(1)]).toEqual([4, [left, ""]])
    expect(stderr).toContain("[lock-unusable]")
    expect(JSON.parse(readFileSync(told, "utf8"))).toMatchObject({
      message: "lock-unusable",
      what_to_do: `${left} \`nightjar explain lock-unusable\` says more.`,
    })
  })

  it("is no fault of the service: `doctor` asks it all the same [doctor service]", async () => {
    const path = job("unread", ["ok"])
    const folder = join(root, "unread")
    claimFolder(new DurableFiles(machineCalls), folder, 0o700)
    mkdirSync(join(folder, "ledger.sqlite"))
    const { code, stdout } = await nightjar("doctor", path, "--json", "--output", folder)
    const lines = JSON.parse(stdout) as ReadonlyArray<{ what: string; verdict: string }>
    const verdictOf = (name: string) => lines.find(({ what }) => what.endsWith(name))?.verdict
    expect([code, verdictOf("ledger"), verdictOf(": service")]).toEqual([2, "failed", "ok"])
  })
})

describe("one process at a time", () => {
  /** A run beside a lock that is held here until the run says that it waits, or for as long as it goes on. */
  const beside = async (args: ReadonlyArray<string>, onWait: (run: Running, release: () => void) => void) => {
    claimFolder(new DurableFiles(machineCalls), output, 0o700)
    const scope = Scope.makeUnsafe()
    const lock = lockFolder(join(output, "run.lock"), ["run other.2026-11-21"])
    await Effect.runPromise(Scope.provide(lock, scope))
    const release = () => Effect.runSync(Scope.close(scope, Exit.void))
    let isTold = false
    const run = startHere(["run", ...args], {
      environment,
      folder: root,
      onStderr: (all) => {
        if (isTold || !all.includes("Waiting for it")) return
        isTold = true
        onWait(run, release)
      },
    })
    const { code, stderr } = await run.ended
    release()
    const whom = `process ${process.pid} on ${hostname()} since TIME, run other.2026-11-21`
    const said = stderr.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME").replaceAll(whom, "HOLDER")
    return { code, said }
  }
  const waits =
    "Another process is working in this output folder: HOLDER. Waiting for it until TIME at the latest.\n"
  const ends =
    "nightjar: another process is working in this output folder: HOLDER [output-locked]\nNothing was started here. " +
    "Wait until it ends, as `nightjar run --wait DURATION` does. Another output folder would not know which logins " +
    "were rejected here.\n"

  it("a second one exits 5, starts nothing and names the first [exit 5]", async () => {
    expect(await beside([job("locked", ["ok"])], () => undefined)).toEqual({ code: 5, said: ends })
  })

  it("a second one that may wait starts when the first ends, and else tells the receivers of its job", async () => {
    const path = job("patient", ["ok"])
    const told = join(root, "told.json")
    const receiver = JSON.stringify(["sh", "-c", `cat > ${told}`])
    writeFileSync(join(root, path), `${readFileSync(join(root, path))}notify: [{ command: ${receiver} }]\n`)
    const inVain = await beside([path, "--wait", "1 second"], () => undefined)
    expect(inVain).toEqual({ code: 5, said: `${waits}${ends}` })
    expect(JSON.parse(readFileSync(told, "utf8"))).toMatchObject({ events: ["failed"], exit_code: 5 })
    const stopped = await beside([path, "--wait", "8 hours"], (run) => run.kill("SIGTERM"))
    expect(stopped).toEqual({
      code: 143,
      said: `${waits}interrupted while waiting for another process in the output folder. Nothing was started. Run the same command again. [interrupted-waiting]\n`,
    })
    const served = await beside([path, "--wait", "8 hours"], (_, release) => release())
    expect([served.code, served.said.slice(waits.length).split(": ", 2)[1]?.split(" done")[0]]).toEqual([
      0,
      "executing, 0/1",
    ])
  })
})

it("an interrupted run exits 129, 130 or 143, says that its state is saved, opens no debugger, and is resumed by the next call [exit 129] [exit 130] [exit 143]", async () => {
  const path = job("cut", ["ok+queue-300+run-30+records-2"], 300)
  // The launcher and the program behind it each refuse the signal that opens Node's debugger.
  const behind = program() === main ? join(main, "../program.js") : program()
  for (const [started, signal, code] of [
    [program(), "SIGTERM", 143],
    [behind, "SIGINT", 130],
    [behind, "SIGHUP", 129],
  ] as const) {
    const child = spawn(process.execPath, [started, "run", path], {
      cwd: root,
      env: { ...process.env, ...environment },
    })
    let stderr = ""
    child.stderr.on("data", (chunk: Buffer) => {
      if (!stderr.includes("executing") && chunk.includes("executing"))
        for (const each of ["SIGUSR1", signal] as const) child.kill(each)
      stderr += chunk.toString()
    })
    expect(await new Promise((resolve) => child.on("exit", resolve))).toBe(code)
    expect(stderr).not.toMatch(/debugger/i)
    expect(stderr).toMatch(
      /interrupted: the state is saved\. .*`nightjar run JOB` to resume\. \[interrupted\]\n$/,
    )
  }
  // A service that does not answer keeps no process.
  let hung: ReturnType<typeof spawn> | undefined
  const silent = createServer(() => hung?.kill("SIGTERM"))
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve))
  const at = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
  const text = readFileSync(join(root, path), "utf8").replace("cut", "hung")
  const service = `{ base_url: ${at}, flows_url: ${at}, app_secret: env:DEMO_PASSWORD }`
  writeFileSync(join(root, "hung.yaml"), text.replace(/^service: .*$/m, `service: ${service}`))
  hung = spawn(process.execPath, [program(), "run", "hung.yaml"], { cwd: root, env: environment })
  expect(await new Promise((resolve) => hung?.on("exit", resolve))).toBe(143)
  silent.close()
  const { code, stdout } = await nightjar("run", path, "--json", "--no-progress")
  expect([code, JSON.parse(stdout)]).toMatchObject([0, [{ executions: 1, outcomes: { succeeded: 1 } }]])
  const runs = JSON.parse((await nightjar("runs", "--json")).stdout) as ReadonlyArray<{ job: string }>
  expect(runs.filter((run) => run.job === "cut").length).toBe(1)
})

describe("a running night", () => {
  const usernames = ["ok+queue-900+run-30+records-1", "ok+queue-900+run-31+records-1", "ok+queue-9+run-32"]
  const folder = join(root, "watched")
  const ask = (...args: ReadonlyArray<string>) => nightjar(...args, "--output", folder)
  /** Calls `then` once the run executes; resolves with its end. */
  const running = async (path: string, then: () => Promise<void>) => {
    const executing = Promise.withResolvers<void>()
    const { ended } = startHere(["run", path, "--output", folder], {
      environment,
      folder: root,
      onStderr: (all) => (all.includes("executing") ? executing.resolve() : undefined),
    })
    await Promise.race([executing.promise, ended])
    await then()
    return ended
  }

  it("answers others: what it does, a pause, limits and a drain, after which the next run does the rest", async () => {
    const path = job("steered", usernames, 300)
    writeFileSync(
      join(root, path),
      `${readFileSync(join(root, path), "utf8")}concurrency: { max_in_flight: 2, per_engine: 2 }\n`,
    )
    const said: Array<Ended> = []
    const seen: Array<unknown> = []
    const started = () => {
      const [log = ""] = globSync(join(folder, "runs/steered.*/log.ndjson"))
      return readFileSync(log, "utf8").split('"StartAnswered"').length - 1
    }
    const { code, stderr } = await running(path, async () => {
      await vi.waitUntil(() => started() === 2, { interval: 5, timeout: 20_000 })
      for (const order of ["pause", "limit max_in_flight=3", "limit per_engine=1", "resume"])
        said.push(await ask(...order.split(" ")))
      seen.push(statSync(join(folder, "nightjar.sock")).mode & 0o777)
      said.push(await ask("runs"), await ask("drain"))
      const watched = await ask("status", "--watch", "--json")
      seen.push(
        watched.stdout
          .split("\n")
          .slice(0, -1)
          .map((line) => JSON.parse(line)),
      )
    })
    expect(code).toBe(4)
    expect(said[4]?.stdout).toMatch(/^steered\S+ +\S+ +running/m)
    expect(said.map(({ code }) => code)).toEqual([0, 2, 0, 0, 0, 0])
    expect(said[0]?.stdout).toMatch(
      /^steered\S+ is now paused: 1 task not started, 2 running tasks are followed/,
    )
    expect(said[1]?.stderr).toMatch(/allows 2 in flight and 2 per engine.*\[limit-above-job\]/)
    expect(said[2]?.stdout).toContain("now has at most 2 in flight and 1 per engine.")
    expect(said[3]?.stdout).toContain("starts tasks again: 1 task left.")
    expect(said[5]?.stdout).toContain("it starts nothing more")
    const [mode, pictures] = seen as [number, ReadonlyArray<{ state: string; total: object }>]
    expect(mode).toBe(0o600)
    expect(pictures[0]).toMatchObject({ state: "draining", total: { tasks: 3, queued: 0, running: 2 } })
    expect(JSON.stringify([pictures, said, stderr])).not.toContain(canary)
    const [run_id] = readdirSync(join(folder, "runs"))
    const log = readFileSync(join(folder, "runs", run_id ?? "", "log.ndjson"), "utf8")
      .trim()
      .split("\n")
    const orders = log.map((line) => JSON.parse(line)).filter(({ fact }) => fact === "RunSteered")
    expect(orders.map(({ order }) => order)).toEqual(["pause", "limit", "resume", "drain"])
    expect(stderr).toMatch(
      /the run was paused: .*\nthe limits are now 2 in flight and 1 per engine\n.*the run is drained: /s,
    )
    expect((await ask("status", "--json")).stdout).toContain("RUN_DRAINED")
    const rest = await ask("run", path, "--no-progress", "--json")
    expect([rest.code, JSON.parse(rest.stdout)]).toMatchObject([0, [{ outcomes: { succeeded: 3 } }]])
  })
})

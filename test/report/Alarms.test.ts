/**
 * What reaches the receivers of a job, night after night: by nights in virtual time, and by receivers in this
 * process that answer well, badly or not at all.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { hostname } from "node:os"
import { dirname, join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Clock, ConfigProvider, Deferred, Effect, Fiber, Layer } from "effect"
import { HttpClient, HttpClientError, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { describe, expect, it, vi } from "vitest"
import { NodeClient } from "../../src/client/NodeClient.ts"
import { alarmsCheck, announced, refuseSilent, toldUnbegun, watchedForLate } from "../../src/cli/Notices.ts"
import { runNightjar } from "../../src/cli/Nightjar.ts"
import { Output, Settings } from "../../src/cli/Output.ts"
import { Wiring } from "../../src/cli/Wiring.ts"
import { NotSent, Service } from "../../src/client/Service.ts"
import { Steering } from "../../src/task/NightPicture.ts"
import { FolderLocked } from "../../src/base/FolderLock.ts"
import type { Job, NotifyEvent, Receiver } from "../../src/jobs/Job.ts"
import { Ledger, append } from "../../src/ledger/Ledger.ts"
import { sha256Hex } from "../../src/base/Hashes.ts"
import { anId } from "../harness/Id.ts"
import { loadJob } from "../../src/jobs/LoadJob.ts"
import { Secrets } from "../../src/jobs/Secrets.ts"
import { runNight } from "../../src/run/Nightly.ts"
import { eventsOf, type Notice, type RunEnding } from "../../src/report/Notice.ts"
import { newsOf, type News } from "../../src/report/Changes.ts"
import { summarise } from "../../src/report/Summary.ts"
import { ending, engineRow, news, pictureOf, planned, run_id, runOf, settled } from "./Samples.ts"
import { worksHere } from "../harness/CommandsHere.ts"
import { customer, jobOf, live, makeNights, options, wait } from "../harness/SmallNights.ts"
import { sharedFolder } from "../harness/Folder.ts"
import { secretsOf } from "../harness/SecretsMemory.ts"
import { effect } from "../harness/Steps.ts"

type ServicesHere = NodeServices.NodeServices | Secrets | Settings | Output | Wiring

const root = sharedFolder()

describe("the events of a run", () => {
  it("are `failed` where the night did not happen or is not complete, and trouble only while it is new", () => {
    const told = (exit_code: number, ...fresh: ReadonlyArray<News>) =>
      eventsOf(ending(exit_code, { news: fresh })).join(" ")
    const failed = [0, 1, 2, 3, 4, 5, 6, 129, 130, 143].filter((code) => told(code) === "failed")
    expect(failed).toEqual([1, 2, 4, 5, 6])
    expect([0, 3, 129, 130, 143].map((code) => told(code))).toEqual(["", "", "", "", ""])
    expect(told(3, news("BLOCKED_USER", "failed"))).toBe("new_trouble")
    expect(told(4, news("BLOCKED_USER", "failed"))).toBe("failed new_trouble")
    expect(told(4, news("ENGINE_UNAVAILABLE", "unfinished"))).toBe("failed")
    expect(told(3, news("TABLES_HELD", null))).toBe("new_trouble")
    expect(eventsOf(ending(0, { recovered: true }))).toEqual(["recovered"])
    expect(eventsOf(ending(4, { recovered: true }))).toEqual(["failed"])
  })

  const nightly = (...customers: Job["assignments"]): Job => ({
    ...jobOf(customers),
    name: "job",
    retry: { ...jobOf([]).retry, max_attempts: 1 },
  })
  const heard = (job: Job, more = {}) =>
    Effect.map(runNight(job, { ...options, ...more }), ({ exit_code, recovered, news: fresh, nothingToDo }) =>
      nothingToDo
        ? [exit_code]
        : [
            exit_code,
            ...eventsOf(ending(exit_code, { recovered, news: fresh })),
            ...fresh.map(({ reason, count }) => `${count} ${reason}`),
          ],
    )
  const [ok, blocked] = [customer("c-1", "queue-1+run-1"), customer("c-2", "queue-1+run-1+end-TIMEOUT")]
  const away = customer("c-2", "queue-1+run-1+end-NETWORK_ERROR")
  const well = customer("c-2", "queue-1+run-1")

  it("tell trouble once: not in the next nights, nor after an outage, but again once it was over", () => {
    const told = live(
      makeNights(),
      Effect.gen(function* () {
        const nights: Array<unknown> = []
        for (const one of [blocked, away, away, blocked, well, blocked]) {
          nights.push(yield* heard(nightly(ok, one)))
          yield* wait(1)
        }
        return nights
      }),
    )
    expect(told).toEqual([
      [3, "new_trouble", "1 TIMEOUT"],
      [4, "failed", "1 NETWORK_ERROR"],
      [4, "failed"],
      [3],
      [0, "recovered"],
      [3, "new_trouble", "1 TIMEOUT"],
    ])
  })

  it("tell what a resumed run brought, and that it is over, compared with what its last end told", () => {
    const also = (words: string) => customer("c-3", words)
    const told = live(
      makeNights(),
      Effect.gen(function* () {
        const first = yield* heard(nightly(ok, away, also("queue-1+run-1+end-FAILED")))
        const again = yield* heard(nightly(ok, away, also("queue-1+run-1+end-FAILED")))
        yield* wait(1)
        const cut = yield* heard(nightly(ok, away, also("queue-1+run-1")))
        return [first, again, cut, yield* heard(nightly(ok, well, also("queue-1+run-1")))]
      }),
    )
    expect(told).toEqual([
      [4, "failed", "new_trouble", "1 FAILED", "1 NETWORK_ERROR"],
      [4, "failed"],
      [4, "failed"],
      [0, "recovered"],
    ])
  })

  it("are `failed` as often as a gate holds the tables back, and new trouble once", () => {
    const fact = { _tag: "RunHeld", run_id, database: "held.duckdb" } as const
    const held = runOf(
      { ...fact, gates: [{ gate: "keys", expected: "0", found: "1" }] },
      { _tag: "RunEnded", run_id, exit_code: 3, leftovers: true },
    )
    const nights = [[], [held]].map((runs) => {
      const fresh = newsOf(held, { runs, older: new Map() })
      return eventsOf(ending(3, { summary: summarise(held), news: fresh }))
    })
    expect(nights).toEqual([["failed", "new_trouble"], ["failed"]])
  })

  it("tell each night that the service kept from beginning, and the first one after it", () => {
    const unreachable = Effect.updateService(Service, (service) => ({
      ...service,
      listEngines: Effect.fail(new NotSent({ message: "no connection" })),
    }))
    const told = live(
      makeNights(),
      Effect.gen(function* () {
        const job: Job = { ...nightly(ok), night: { starts: "22:00", until: "06:00" } }
        const refused = yield* heard(job).pipe(unreachable, Effect.flip)
        yield* Effect.sleep("17 hours")
        return [refused._tag, yield* heard(job)]
      }),
    )
    expect(told).toEqual(["ServiceRefused", [0, "recovered"]])
  })
})

/** Receivers at one address each: what they were sent, and what they answer. */
const receiving = (answers: Readonly<Record<string, number | "hang" | "dead">> = {}) => {
  const received: Array<{ readonly at: string; readonly body: string }> = []
  const hung = Deferred.makeUnsafe<void>()
  const client = HttpClient.make((request, url) => {
    const { body } = request
    const text = body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : ""
    received.push({ at: url.pathname, body: text })
    const answer = answers[url.pathname] ?? 200
    if (answer === "dead") {
      const cause = new Error("refused")
      const reason = new HttpClientError.TransportError({ request, cause })
      return Effect.fail(new HttpClientError.HttpClientError({ reason }))
    }
    if (answer === "hang") return Effect.andThen(Deferred.succeed(hung, undefined), Effect.never)
    const headers = { location: "https://elsewhere.example/" }
    return Effect.succeed(
      HttpClientResponse.fromWeb(request, new Response(null, { status: answer, headers })),
    )
  })
  const names = ["GOOD", "CHAT", "BROKEN", "MOVED", "SLOW", "DEAD", "WATCH"]
  const secrets = secretsOf(
    new Map(names.map((name) => [`env:${name}`, `https://alerts.example/${name.toLowerCase()}-secret`])),
  )
  const wiring = {
    secrets,
    receivers: Layer.merge(Layer.succeed(HttpClient.HttpClient, client), secrets),
  } as unknown as Wiring["Service"]
  const notices = () =>
    received.filter(({ body }) => body.startsWith("{")).map(({ body }) => JSON.parse(body) as Notice)
  return { received, notices, hung: Deferred.await(hung), wiring }
}

const url = (
  name: string,
  on: ReadonlyArray<NotifyEvent>,
  format: "json" | "slack" = "json",
  index = 0,
): Receiver => ({ _tag: "Url", name: `notify[${index}]`, on, address: { _tag: "Env", name }, format })
const watchdog: Receiver = { _tag: "Ping", name: "notify[1]", address: { _tag: "Env", name: "WATCH" } }
const telling = (notify: Job["notify"]): Job => ({ ...jobOf([]), name: "nightly", notify })
const here = <A, E, R>({ wiring }: ReturnType<typeof receiving>, work: Effect.Effect<A, E, R>) =>
  worksHere(Effect.provideService(work, Wiring, wiring))

describe("receivers", () => {
  effect("are told in full, each in its form, and dead ones cost a line and seconds", function* () {
    const answers = {
      "/broken-secret": 500,
      "/moved-secret": 302,
      "/slow-secret": "hang",
      "/dead-secret": "dead",
    }
    const place = receiving(answers as Parameters<typeof receiving>[0])
    const forms = [url("GOOD", ["new_trouble"]), url("CHAT", ["new_trouble"], "slack", 1), watchdog]
    const bad = ["BROKEN", "MOVED", "SLOW", "DEAD"].map((name, index) =>
      url(name, ["new_trouble"], "json", index + 2),
    )
    const output = join(root, "told")
    const report = join(output, "runs", run_id, "report.html")
    mkdirSync(dirname(report), { recursive: true })
    writeFileSync(report, "")
    const timeout = settled("c-1", "failed", "TIMEOUT", "engineer")
    const fine = settled("c-2", "succeeded", "COMPLETED", "nobody")
    const end = { _tag: "RunEnded", run_id, exit_code: 3, leftovers: false } as const
    const summary = summarise(runOf(planned("c-1"), planned("c-2"), timeout, fine, end))
    const fresh: News = { reason: "TIMEOUT", outcome: "failed", who_acts: "engineer", count: 1 }
    const one = ending(3, { job: "demo", summary, news: [fresh] })
    const job = { ...telling([...forms, ...bad]), name: "demo" }
    const work = announced(job, output)(Effect.succeed({ exit_code: 3, ending: one }))
    const running = yield* Effect.forkChild(here(place, work))
    yield* place.hung
    yield* TestClock.adjust("20 seconds")
    const { code, stderr } = yield* Fiber.join(running)
    const lines = stderr.split("\n").filter((line) => line !== "")
    expect([code, lines.toSorted()]).toEqual([
      0,
      [
        "it answered 500",
        "it redirects (302), which is not followed",
        "it did not answer within 5 seconds",
        "it cannot be reached",
      ].map(
        (why, at) => `warning: notify[${at + 2}] of the job was not notified: ${why} [notice-undelivered]`,
      ),
    ])
    const paths = ["broken", "broken", "chat", "dead", "dead", "good", "moved", "moved", "slow", "slow"]
    expect(place.received.map(({ at }) => at).toSorted()).toEqual([
      ...paths.map((name) => `/${name}-secret`),
      "/watch-secret/fail",
      "/watch-secret/start",
    ])
    const meaning =
      "the run has ended; some tasks need the customer or an engineer, and would fail again until then"
    const what_to_do =
      `People have to act before a command can finish the rest. After that, \`nightjar rerun ${run_id}\` ` +
      "runs again what did not succeed. `nightjar status` and the run's report.html show the rest."
    const hash = sha256Hex(JSON.stringify([["TIMEOUT", "failed", "engineer", 1]])).slice(0, 12)
    const key = `nightjar/${run_id}/new_trouble/${hash}`
    const text = `${run_id} (new_trouble): exit code 3, ${meaning}.
2 tasks: 1 succeeded, 1 failed.
New: 1 TIMEOUT: action needed from an engineer.
1 TIMEOUT: action needed from an engineer.
${what_to_do}
Host: ${hostname()}
Report: ${report}
Key: ${key}`
    const what = "Raise `execution_timeout` or ask for fewer features, then rerun."
    const trouble = { ...fresh, what_to_do: what }
    const bodyAt = (at: string): unknown =>
      JSON.parse(place.received.find((each) => each.at === at)?.body ?? "")
    expect(bodyAt("/good-secret")).toEqual({
      tool: "nightjar",
      events: ["new_trouble"],
      key,
      host: hostname(),
      job: "demo",
      run_id,
      run_date: "2026-11-21",
      exit_code: 3,
      message: null,
      meaning,
      tasks: 2,
      outcomes: { succeeded: 1, partial: 0, failed: 1, skipped: 0, unfinished: 0 },
      changes: null,
      new: [trouble],
      troubles: [trouble],
      open: null,
      report,
      what_to_do,
      text,
    })
    expect(bodyAt("/chat-secret")).toEqual({ text })
  })

  it("hear of a night that could not begin, each of its job, with what to do", async () => {
    const place = receiving()
    const other = { ...telling([url("GOOD", ["failed"])]), name: "other" }
    const locked = Effect.fail(new FolderLocked({ path: "out", holder: "", message: "in use by somebody" }))
    const jobs = [telling([url("GOOD", ["failed"]), watchdog]), other]
    const { code } = await Effect.runPromise(here(place, toldUnbegun(jobs, "out")(locked)))
    expect(code).toBe(5)
    expect(place.received.map(({ at }) => at).toSorted()).toEqual([
      "/good-secret",
      "/good-secret",
      "/watch-secret/fail",
    ])
    const [told, ofOther] = place.notices()
    const date = told?.run_date ?? ""
    expect(told).toEqual({
      tool: "nightjar",
      events: ["failed"],
      key: `nightjar/nightly.${date}/failed`,
      host: hostname(),
      job: "nightly",
      run_id: null,
      run_date: expect.stringMatching(/^\d{4}-\d\d-\d\d$/) as unknown,
      exit_code: 5,
      message: "output-locked",
      meaning: "another process is working in this output folder; nothing was started",
      tasks: null,
      outcomes: null,
      changes: null,
      new: [],
      troubles: [],
      open: null,
      report: null,
      what_to_do: expect.stringMatching(/ `nightjar explain output-locked` says more\.$/) as unknown,
      text: expect.stringContaining("nightly (failed): exit code 5, another process") as unknown,
    })
    expect(ofOther?.key).toBe(`nightjar/other.${date}/failed`)
  })

  it("hear nothing of an interrupt, nor of exit code 3 without anything new; a watchdog then hears success", async () => {
    const place = receiving()
    const job = telling([url("GOOD", ["failed", "late", "new_trouble", "recovered"]), watchdog])
    const over = (one: RunEnding) =>
      announced(job, "out")(Effect.succeed({ exit_code: one.exit_code, ending: one }))
    const work = Effect.gen(function* () {
      yield* Effect.exit(toldUnbegun([job], "out")(Effect.interrupt))
      yield* over(ending(3))
      yield* over(ending(3, { news: [news("TIMEOUT", "failed")] }))
      yield* over(ending(4))
      yield* announced(job, "out")(Effect.succeed({ exit_code: 4, ending: undefined }))
    })
    expect((await Effect.runPromise(here(place, work))).stderr).toBe("")
    const start = "/watch-secret/start"
    expect(place.received.map(({ at }) => at).filter((at) => at !== start)).toEqual([
      "/watch-secret",
      "/good-secret",
      "/watch-secret/fail",
      "/good-secret",
      "/watch-secret/fail",
      "/watch-secret/fail",
    ])
    expect(place.notices().map(({ events }) => events)).toEqual([["new_trouble"], ["failed"]])
  })

  effect("hear of a late run how many of its tasks are open, and on which engines", function* () {
    const place = receiving()
    const startMs = Date.UTC(2026, 10, 21, 22)
    yield* TestClock.setTime(startMs)
    const job: Job = {
      ...telling([url("GOOD", ["late"])]),
      night: { starts: "22:00", until: "06:00" },
      timezone: "UTC",
    }
    const row = (engine_reference: string, queued: number, running: number, conflict: number) =>
      engineRow(engine_reference, { tasks: 10, queued, running, waiting: { time: 0, engine: 0, conflict } })
    const picture = pictureOf("nightly.2026-11-21", {
      total: row("total", 4, 5, 6),
      engines: [row("a-bank:api", 1, 0, 0), row("b-bank:api", 0, 0, 0), row("c-bank:api", 3, 5, 6)],
    })
    // At the deadline, the run ends what is open.
    const over = { ...picture, engines: [row("c-bank:api", 0, 0, 0)] }
    const clock = yield* Clock.Clock
    const isOver = () => clock.currentTimeMillisUnsafe() >= startMs + 8 * 3_600_000
    const steering = { hold: () => Effect.void, look: () => (isOver() ? over : picture) }
    const run = Effect.sleep("9 hours").pipe(
      watchedForLate(job, clock),
      Effect.provideService(Steering, steering),
      Effect.provideService(Wiring, place.wiring),
      Effect.provide(NodeServices.layer),
    )
    const running = yield* Effect.forkChild(run)
    yield* TestClock.adjust("9 hours")
    yield* Fiber.join(running)
    const [told] = place.notices()
    expect(place.notices().length).toBe(1)
    expect(told).toMatchObject({
      events: ["late"],
      key: "nightjar/nightly.2026-11-21/late",
      run_id: "nightly.2026-11-21",
      exit_code: null,
      meaning: "the run has not ended by 2026-11-22T06:00:00.000Z: 15 tasks of 10 still open",
      open: {
        tasks: 15,
        engines: [
          { engine_reference: "c-bank:api", tasks: 14 },
          { engine_reference: "a-bank:api", tasks: 1 },
        ],
      },
    })
    expect(told?.text).toContain("\n14 tasks open on c-bank:api.\n1 task open on a-bank:api.\n")
  })

  it("do not delay the end by a body that never ends", async () => {
    const server = createServer((_, response) => {
      response.writeHead(200)
      const pour = (): void => {
        while (response.write("x".repeat(65_536)));
        response.once("drain", pour)
      }
      pour()
    })
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const secrets = secretsOf(new Map([["env:GOOD", address]]))
    const wiring = { receivers: Layer.merge(NodeClient.layer(), secrets) } as unknown as Wiring["Service"]
    const job = telling([url("GOOD", ["failed"])])
    const work = announced(job, "out")(Effect.succeed({ exit_code: 4, ending: ending(4) }))
    const { stderr } = await Effect.runPromise(worksHere(Effect.provideService(work, Wiring, wiring)))
    server.closeAllConnections()
    server.close()
    expect(stderr).toBe("")
  })
})

const written = (name: string, notify: string): string => {
  const path = join(root, `${name}.yaml`)
  writeFileSync(
    path,
    `name: ${name}
service: sandbox
engines: [sandbox-bank:website]
customers: [{ id: c-1, parameters: { username: ok, password: env:NOBODY_ASKED } }]
${notify}`,
  )
  return path
}

const loaded = (path: string): Promise<Job> =>
  Effect.runPromise(
    loadJob(path).pipe(
      Effect.map(({ job }) => job),
      Effect.provide(NodeServices.layer),
    ),
  )

describe("what `notify` and `telemetry` refer to", () => {
  const environment = ConfigProvider.fromEnvRecord({
    PATH: "/usr/bin:/bin",
    PLAIN: "http://alerts.example/plain-secret",
    SMTP: "https://no-mail-secret.example",
    FINE: "https://alerts.example/fine-secret",
    HEADERS: "no-headers-secret",
  })
  const resolving = { secrets: Secrets.layer.pipe(Layer.provide(NodeServices.layer)) }
  const asked = <A, E>(work: Effect.Effect<A, E, ServicesHere>) =>
    Effect.runPromise(
      worksHere(
        work.pipe(
          Effect.provide(resolving.secrets),
          Effect.provideService(Wiring, resolving as unknown as Wiring["Service"]),
          Effect.provideService(ConfigProvider.ConfigProvider, environment),
        ),
      ),
    )
  const silent = written(
    "silent",
    `notify:
  - { on: [failed], url: env:ALERT_URL }
  - { url: env:PLAIN }
  - ping: file:missing.url
  - { email: env:SMTP, from: a@example.org, to: [b@example.org] }
  - { command: [no-such-program-here, --now] }
  - { command: [sh, -c, "true"] }
  - { url: env:FINE }
  - { url: "exec:exit 7" }
telemetry:
  otlp: env:COLLECTOR
  headers: env:HEADERS
`,
  )
  const at = (line: number, column: number, why: string) => `${silent}:${line}:${column}: ${why}`
  const problems = [
    at(6, 26, "`notify[0]`: env:ALERT_URL: the environment has no such variable, or an empty one"),
    at(7, 12, "`notify[1]`: its address is not https:// (plain http only to this machine)"),
    at(8, 11, `\`notify[2]\`: file:${join(root, "missing.url")}: it cannot be read (there is no such file)`),
    at(
      9,
      14,
      "`notify[3]`: its address is not smtps://USER:PASSWORD@HOST, or smtp:// for a server with STARTTLS",
    ),
    at(10, 16, "`notify[4]`: there is no such program, or it is not executable"),
    at(13, 12, "`notify[7]`: exec:…: the command ended with exit code 7"),
    at(15, 9, "`telemetry.otlp`: env:COLLECTOR: the environment has no such variable, or an empty one"),
    at(16, 12, "`telemetry.headers`: its headers are not name=value,name=value"),
  ]

  it("is resolved before a run starts or is planned, and each fault named with its place", async () => {
    const job = await loaded(silent)
    const { code, stderr } = await asked(refuseSilent([job]))
    expect({ code, lines: stderr.split("\n").filter((line) => line !== "") }).toEqual({
      code: 2,
      lines: [
        ...problems,
        "nightjar: 8 problems in `notify` and `telemetry` of the job files: an alarm would not arrive " +
          "[alarms-unreachable]",
        "Nothing was started. Set each variable, file or command that a reference names, or remove the receiver; then try it with `nightjar notify test JOB`.",
      ],
    })
    const planned = await asked(runNightjar(["plan", silent, "--output", join(root, "none")]))
    expect([planned.code, planned.stderr.includes(problems.join("\n"))]).toEqual([2, true])
    const validated = await asked(runNightjar(["validate", silent]))
    expect({ code: validated.code, stderr: validated.stderr }).toEqual({ code: 0, stderr: "" })
  })

  effect("ends the preview of a rerun as it would end the rerun", function* () {
    const keys = { run_id: anId("silent.2026-11-21"), task_id: anId("t") }
    const task = { customer_id: anId("c-1"), engine_reference: anId("sandbox-bank:website"), features: [] }
    const run = { job: "silent", job_path: silent, run_date: "2026-11-21", tool_version: "0" }
    const settled = { outcome: "failed", reason: "FAILED", who_acts: "engineer" } as const
    const output = join(root, "rerun")
    mkdirSync(output)
    const ledger = () => Ledger.layer({ path: join(output, "ledger.sqlite") })
    const written = append(
      { _tag: "RunStarted", run_id: keys.run_id, ...run },
      { _tag: "TaskPlanned", ...keys, ...task },
      { _tag: "TaskSettled", ...keys, ...settled },
    )
    yield* Effect.provide(written, ledger())
    const args = ["rerun", "--dry-run", "--output", output]
    const { code, stderr } = yield* worksHere(
      runNightjar(args).pipe(Effect.provideService(ConfigProvider.ConfigProvider, environment)),
      { ...resolving, ledger } as unknown as Partial<Wiring["Service"]>,
    )
    expect([code, stderr.includes(problems.join("\n"))]).toEqual([2, true])
  })

  effect("ends a run before it starts, and the receivers of all its jobs that work are told", function* () {
    const place = receiving()
    const both = "notify: [{ url: env:GOOD }, { url: env:NOT_SET }]\n"
    const cut = written("cut", "notify: [{ url: env:GOOD }]\nnigth: {}\n")
    const run = (...jobs: ReadonlyArray<string>) =>
      Effect.gen(function* () {
        const args = ["run", ...jobs, "--output", join(root, "nowhere")]
        const running = yield* Effect.forkChild(here(place, runNightjar(args)))
        while (running.pollUnsafe() === undefined) {
          yield* Effect.promise(() => new Promise((done) => setImmediate(done)))
          yield* TestClock.adjust("1 second")
        }
        const { code } = yield* Fiber.join(running)
        const told = place.notices().map(({ job, message }) => `${job} ${message}`)
        place.received.length = 0
        return [code, ...told.toSorted()]
      })
    const fine = written("fine-too", "notify: [{ url: env:GOOD }]\n")
    expect(yield* run(written("half", both), fine)).toEqual([
      2,
      "fine-too alarms-unreachable",
      "half alarms-unreachable",
    ])
    // A job that cannot be read has no receivers, but the others given with it have.
    expect(yield* run(fine, cut)).toEqual([2, "fine-too job-invalid"])
    expect(existsSync(join(root, "nowhere"))).toBe(false)
  })

  it("has a line of `doctor` of its own", async () => {
    const job = await loaded(silent)
    const fine = await loaded(written("fine", "notify: [{ url: env:FINE }]\n"))
    const quiet = await loaded(written("quiet", ""))
    const open = await loaded(written("open", "telemetry: { otlp: env:PLAIN }\n"))
    const checks = await Effect.runPromise(
      Effect.forEach([job, fine, quiet, open], alarmsCheck).pipe(
        Effect.provide(resolving.secrets),
        Effect.provideService(ConfigProvider.ConfigProvider, environment),
        Effect.provide(NodeServices.layer),
      ),
    )
    expect(checks).toEqual([
      {
        verdict: "failed",
        says: `an alarm would not arrive: ${problems.join("; ")}`,
        id: "alarms-unresolved",
      },
      { verdict: "ok", says: "1 receiver, resolved and not told" },
      undefined,
      {
        verdict: "failed",
        says: expect.stringMatching(
          / `telemetry.otlp`: the collector's address is not an https:\/\/ address without user, query or /,
        ) as unknown,
        id: "alarms-unresolved",
      },
    ])
  })
})

describe("`nightjar notify test`", () => {
  const test = (place: ReturnType<typeof receiving>, ...args: ReadonlyArray<string>) =>
    here(place, runNightjar(["notify", "test", ...args]))

  effect("says what each receiver answered and when, in seconds, without its address", function* () {
    const place = receiving({ "/broken-secret": 500, "/slow-secret": "hang" })
    const path = written(
      "tried",
      `notify:
  - { url: env:GOOD, on: [recovered] }
  - { url: env:GOOD, format: slack }
  - { url: env:BROKEN }
  - { url: env:SLOW }
  - { ping: env:WATCH }
  - { url: env:NOT_SET }
`,
    )
    const testing = yield* Effect.forkChild(test(place, path, "--json"))
    yield* place.hung
    yield* TestClock.adjust("5 seconds")
    const { code, stdout, stderr } = yield* Fiber.join(testing)
    const answer = (index: number, kind: string, column: number, told: boolean, said: string, ms = 0) => ({
      receiver: `notify[${index}]`,
      kind,
      place: `${path}:${index + 6}:${column}`,
      told,
      answer: said,
      elapsed_ms: ms,
    })
    const answers = JSON.parse(stdout) as ReadonlyArray<Record<string, unknown>>
    expect({ code, stderr, answers }).toEqual({
      code: 2,
      stderr: "",
      answers: [
        answer(0, "url", 12, true, "it answered 200"),
        answer(1, "url", 12, true, "it answered 200"),
        answer(2, "url", 12, false, "it answered 500"),
        answer(3, "url", 12, false, "it did not answer within 5 seconds", 5_000),
        answer(4, "ping", 13, true, "it answered 200"),
        answer(5, "url", 12, false, "env:NOT_SET: it is not known"),
      ],
    })
    expect(place.received.map(({ at }) => at).toSorted()).toEqual([
      "/broken-secret",
      "/good-secret",
      "/good-secret",
      "/slow-secret",
      "/watch-secret/log",
    ])
    const [told] = place.notices()
    expect(told).toMatchObject({ events: ["test"], job: "tried", host: hostname(), exit_code: null })
    expect(told?.text).toMatch(
      /^tried \(test\): this is a test of the job's receivers; nothing has happened\.\n/,
    )
    expect(stdout + stderr).not.toMatch(/secret|alerts\.example/)
  })

  it("ends with 0 only if all answered well, and refuses a job that tells nobody", async () => {
    const place = receiving()
    const well = await Effect.runPromise(test(place, written("well", "notify: [{ url: env:GOOD }]\n")))
    expect(well).toMatchObject({ code: 0, stderr: "" })
    expect(well.stdout).toMatch(/told +notify\[0\] +url +\d+ ms +it answered 200/)
    const command = `notify: [{ command: [sh, -c, "cat > ${root}/told.json; exit 3"] }]\n`
    const failed = await Effect.runPromise(test(place, written("failed", command)))
    expect(failed.code).toBe(2)
    expect(failed.stdout).toMatch(/failed .*failed\.yaml:5:21: the command ended with exit code 3/)
    expect(JSON.parse(readFileSync(join(root, "told.json"), "utf8"))).toMatchObject({ events: ["test"] })
    const nobody = await Effect.runPromise(test(place, written("nobody", "")))
    expect([nobody.code, nobody.stderr.includes("[receivers-absent]")]).toEqual([2, true])
  })

  it("[promise 12 receivers] gives a command PATH, HOME, LANG and the variables that it names, no others", async () => {
    vi.stubEnv("NIGHTJAR_TEST_SECRET", "from-this-process-7")
    const seen = `: $TOKEN; env | grep -vE '^(_|PWD|OLDPWD|SHLVL)=' | sort > ${root}/seen.txt`
    const path = written("seen", `notify: [{ command: [sh, -c, "${seen}"] }]\n`)
    const given = { PATH: "/usr/bin:/bin", HOME: "/home/me", LANG: "C", TOKEN: "t", APP: "s" }
    const { code } = await test(receiving({}), path).pipe(
      Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnvRecord(given)),
      Effect.runPromise,
    )
    vi.unstubAllEnvs()
    expect([code, readFileSync(join(root, "seen.txt"), "utf8")]).toEqual([
      0,
      "HOME=/home/me\nLANG=C\nPATH=/usr/bin:/bin\nTOKEN=t\n",
    ])
  })
})

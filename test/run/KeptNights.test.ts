/** What is counted and not here is not deleted: nights that keep it, and the nights after them. */
import { describe, expect, it } from "vitest"
import { Effect, Exit, Fiber } from "effect"
import { leftoversCheck } from "../../src/cli/commands/Doctor.ts"
import { Service } from "../../src/client/Service.ts"
import { runNight } from "../../src/run/Nightly.ts"
import { splitSelection } from "../../src/cli/commands/Run.ts"
import { previewNight } from "../../src/run/Preview.ts"
import type { ExecutionId, SessionId } from "../../src/service/Ids.ts"
import { builtInSources, type ResultsSource } from "../../src/service/FlowResults.ts"
import type { Job } from "../../src/jobs/Job.ts"
import { topOf } from "../../src/base/DurableFile.ts"
import { Ledger, LedgerFailed } from "../../src/ledger/Ledger.ts"
import { subjectOf } from "../../src/ledger/RunState.ts"
import { renderSummary } from "../../src/report/RenderSummary.ts"
import { reportOf } from "../../src/report/Report.ts"
import { renderReport } from "../../src/report/ReportPage.ts"
import { summarise, withUnpublished } from "../../src/report/Summary.ts"
import type { Reading } from "../../src/sandbox/state/Reading.ts"
import { ledgerFailed, Publisher, PublishFailed } from "../../src/tables/Publisher.ts"
import { Sandbox } from "../../src/sandbox/server/Sandbox.ts"
import { customer, features, jobOf, live, makeNights, options, wait } from "../harness/SmallNights.ts"
import { anId } from "../harness/Id.ts"
import { throttled } from "../task/ScriptedService.ts"
import { linesOf, readPage, template } from "../report/ReadPage.ts"

/** A job of one customer without tokens. */
const jobFor = (words: string, ...codes: ReadonlyArray<string>): Job => {
  const assignment = customer("c-1", `${words}+queue-1+run-1`)
  const { login } = assignment
  const plain = login._tag === "Parameters" ? { ...login, tokenized_access: false } : login
  const asked = codes.length === 0 ? ["customer_information_read"] : codes
  return jobOf([{ ...assignment, login: plain, features: features(...asked) }])
}

/** A night of the job: how it ended, and what is at the service and in the ledger afterwards. */
const nightOf = (job: Job) =>
  Effect.gen(function* () {
    const { run_id, exit_code, state } = yield* runNight(job, options)
    const ledger = yield* Ledger
    const facts = (yield* ledger.facts(run_id)).map(({ fact }) => fact)
    const sandbox = yield* Sandbox
    const truth = yield* sandbox.truth
    const [task] = state.tasks.values()
    const settled = task?.settled?.fact
    return {
      exit_code,
      verdict: `${settled?.outcome} ${settled?.reason} ${settled?.who_acts}`,
      message: settled?.message,
      asked: facts.flatMap((fact) => (fact._tag === "ResultsRead" ? [[fact.source, fact.http_status]] : [])),
      deleted: truth.executions.map(({ deleted_at }) => deleted_at !== undefined),
      starts: truth.executions.length,
      broken: truth.ruleBreaks.map(({ rule }) => rule),
      warnings: summarise(state).warnings,
    }
  })

const profile = "customer_information:user_profile"
const short = "partial RECORDS_SHORT engineer"

describe("a job with `after_export: keep`", () => {
  it("keeps what is wholly here, and says so in place of a deletion that is still to come [kept by job]", () => {
    const told = live(makeNights(), function* () {
      const { state } = yield* runNight({ ...jobFor("records-1"), after_export: "keep" }, options)
      const summary = summarise(state)
      const { executions } = yield* (yield* Sandbox).truth
      const [line] = renderSummary(summary, { width: Infinity, colour: false }).match(/Executions: .*/) ?? []
      const { deletions, exit_code } = summary
      const facts = yield* (yield* Ledger).facts(state.started.run_id)
      const report = reportOf({ facts, before: [], published: undefined, timezone: "UTC" })
      const page = report === undefined ? [] : linesOf(readPage(renderReport(template, report)))
      const table = page.filter((one) => /^(not deleted yet|kept there)/.test(one))
      return { exit_code, deletions, line, table, deleted: executions.map(({ deleted_at }) => deleted_at) }
    })
    expect(told).toEqual({
      exit_code: 0,
      deletions: { done: 0, pending: 0, kept: 1, kept_by_setting: 1 },
      line: "Executions: 1 kept at the service (`after_export: keep`).",
      table: ["not deleted yet | 0", "kept there (`after_export: keep`) | 1"],
      deleted: [undefined],
    })
  })
})

describe("a deletion that is always refused", () => {
  it("is told by the runs after it, and by `doctor`, once it has been for days [decision stuck]", () => {
    const told = live(makeNights(), function* () {
      const warnings: Array<ReadonlyArray<string>> = []
      const refusing = Effect.updateService(nightOf(jobFor("records-1")), Service, (service) => ({
        ...service,
        deleteExecution: () => Effect.succeed("still_running" as const),
      }))
      for (let day = 0; day < 5; day++) {
        warnings.push((yield* refusing).warnings.filter((one) => /runs-stuck/.test(one)))
        yield* wait(1)
      }
      return { warnings, finding: leftoversCheck(yield* (yield* Ledger).runs) }
    })
    const says = (runs: string) =>
      `${runs} left something at the service that later runs could not finish for days; ` +
      "oldest: tokens.2026-11-21"
    const warned = [says("1 run"), says("2 runs")].map((one) => [`${one} [runs-stuck]`])
    expect(told.warnings).toEqual([[], [], [], ...warned])
    expect(told.finding).toEqual({ verdict: "warning", says: says("2 runs"), id: "runs-stuck" })
  })
})

describe("a document that somebody removed or changed after its download", () => {
  const job = jobFor("records-1+attach-2")
  /** A run whose documents are lost, then what follows; what was deleted, and the documents' states. */
  const told = (
    loseWhen: "unpublished" | "published" | "asked",
    answers: "all" | "none first",
    spoil: (documents: Map<string, Uint8Array>) => void = (documents) => documents.clear(),
  ) => {
    const place = makeNights()
    const lose = Effect.sync(() => spoil(place.disk.attachments))
    let isDown = false
    return live(place, function* () {
      const real = yield* Publisher
      const publish: (typeof real)["publish"] = (run_id) =>
        loseWhen === "unpublished"
          ? Effect.andThen(lose, Effect.fail(new PublishFailed({ message: "killed" })))
          : loseWhen === "published"
            ? Effect.tap(real.publish(run_id), () => lose)
            : real.publish(run_id)
      const lossy = Effect.provideService(Effect.result(runNight(job, options)), Publisher, {
        ...real,
        publish,
      })
      const first = yield* Effect.updateService(lossy, Service, (service) => ({
        ...service,
        ...(loseWhen === "asked" && { deleteExecution: () => Effect.succeed("still_running" as const) }),
      }))
      if (loseWhen === "asked") yield* lose
      const stateNow = Effect.gen(function* () {
        const { executions } = yield* (yield* Sandbox).truth
        const [run] = yield* (yield* Ledger).runs
        const state = yield* (yield* Ledger).state(run?.fact.run_id ?? anId(""))
        const [task] = state?.tasks.values() ?? []
        const tags = (yield* (yield* Ledger).facts(run?.fact.run_id ?? anId(""))).map(({ fact }) => fact._tag)
        return {
          isTold: tags.lastIndexOf("RunPublished") > tags.lastIndexOf("AttachmentRead"),
          starts: executions.length,
          isDeleted: executions.some(({ deleted_at }) => deleted_at !== undefined),
          documents: task?.attachments.map(({ status }) => status),
          here: place.disk.attachments.size,
          verdict: task?.settled?.fact.reason,
        }
      })
      const ends: Array<unknown> = [first._tag === "Failure" ? "failed" : first.success.exit_code]
      const seen = [yield* stateNow]
      isDown = answers === "none first"
      for (let further = 0; further < 2; further++) {
        const night = yield* Effect.updateService(runNight(job, options), Service, (service) => ({
          ...service,
          downloadAttachment: (session_id: SessionId, id: string) =>
            isDown ? Effect.fail(throttled(503)) : service.downloadAttachment(session_id, id),
        }))
        ends.push(night.exit_code)
        seen.push(yield* stateNow)
        isDown = false
      }
      return { ends, seen }
    })
  }
  const of = (isDeleted: boolean, status: string, here: number, isTold = true) => ({
    isTold,
    starts: 1,
    isDeleted,
    documents: [status, status],
    here,
    verdict: "COMPLETED",
  })
  const lost = of(false, "failed", 0)
  const whole = of(true, "downloaded", 2)

  it("keeps its execution, and is fetched again by the run that goes on [promise 5 lost documents]", () => {
    expect([told("unpublished", "all"), told("unpublished", "none first")]).toEqual([
      { ends: ["failed", 0, 0], seen: [of(false, "downloaded", 0, false), whole, whole] },
      { ends: ["failed", 4, 0], seen: [of(false, "downloaded", 0, false), lost, whole] },
    ])
  })

  it("is looked for once more before the deletion, and read; the tables say so [promise 5 lost late] [promise 5 lost told]", () => {
    const flip = (documents: Map<string, Uint8Array>) =>
      documents.forEach((bytes, name) => documents.set(name, bytes.with(0, 63)))
    expect([told("published", "all"), told("published", "all", flip)]).toEqual([
      { ends: [4, 0, 0], seen: [lost, whole, whole] },
      { ends: [4, 0, 0], seen: [of(false, "failed", 2), whole, whole] },
    ])
  })

  it("is fetched again where a deletion that was asked for did not happen [promise 5 lost asked]", () => {
    expect(told("asked", "all")).toEqual({
      ends: [4, 0, 0],
      seen: [of(false, "downloaded", 0), whole, whole],
    })
  })
})

describe("landed bodies that were lost before they were published", () => {
  type Read = (answer: ReturnType<Service["Service"]["readExecution"]>) => typeof answer
  type Disk = ReturnType<typeof makeNights>["disk"]
  const cutAt = (from: number) => (disk: Disk) =>
    disk.bodies.forEach((bodies, run_id) => disk.bodies.set(run_id, bodies.slice(0, from)))
  /** A run whose publication fails, what is then done to landing, and the run that goes on. */
  const told = (words: string, lose: (disk: Disk) => void, read: Read = (answer) => answer) => {
    const place = makeNights()
    return live(place, function* () {
      const real = yield* Publisher
      const killed = new PublishFailed({ message: "killed" })
      const publish: (typeof real)["publish"] = () => Effect.fail(killed)
      const night = Effect.result(runNight(jobFor(words), options))
      yield* Effect.provideService(night, Publisher, { ...real, publish })
      lose(place.disk)
      const { executions: before } = yield* (yield* Sandbox).truth
      const second = yield* Effect.updateService(night, Service, (service) => ({
        ...service,
        readExecution: (id: ExecutionId) => read(service.readExecution(id)),
      }))
      const { executions } = yield* (yield* Sandbox).truth
      return {
        exit: second._tag === "Failure" ? `${second.failure}` : second.success.exit_code,
        logins: executions.length - before.length,
        deleted: executions.every(({ deleted_at }) => deleted_at !== undefined),
        rows: place.history.store.runs.get("tokens.2026-11-21")?.rows,
      }
    })
  }
  const untouched = () => told("records-3", () => undefined)
  const spoil = (disk: Disk) =>
    disk.bodies.forEach((bodies) =>
      bodies.forEach((one) => void (one.bytes = one.bytes.map((byte) => byte ^ 1))),
    )

  it("are read again from the service without a login, published and then deleted [promise 7 lost bodies] [promise 7 spoiled bodies] [promise 7 lost place]", () => {
    const whole = untouched()
    expect([whole.exit, whole.logins, whole.deleted]).toEqual([0, 0, true])
    const second = (disk: Disk) =>
      disk.bodies.forEach((bodies, run_id) => disk.bodies.set(run_id, bodies.toSpliced(1, 1)))
    for (const lose of [cutAt(0), cutAt(1), cutAt(2), second, spoil])
      expect(told("records-3", lose)).toEqual(whole)
  })

  it("also of an execution that was followed by another one [promise 7 lost earlier]", () => {
    const { exit, deleted } = told("end-NETWORK_ERROR", cutAt(1))
    expect([exit, deleted]).toEqual([4, true])
  })

  it("also of a session that its customer ran, as far as the service has it [promise 7 lost session] [promise 7 silent session]", () => {
    const of = (isLost: boolean, isGone: boolean) => {
      const place = makeNights()
      return live(place, function* () {
        const job = jobFor("records-3")
        const first = yield* runNight({ ...job, after_export: "keep" }, options)
        const [task] = first.state.tasks.values()
        const session = {
          session_id: task!.attempts[0]!.session_id!,
          customer_id: anId("c-1"),
          place: topOf(""),
        }
        yield* wait(1)
        const second = runNight({ ...job, name: "own", assignments: [], sessions: [session] }, options)
        const real = yield* Publisher
        const publish = () => Effect.fail(new PublishFailed({ message: "killed" }))
        yield* Effect.provideService(Effect.result(second), Publisher, { ...real, publish })
        if (isLost) place.disk.bodies.delete("own.2026-11-22")
        const third = yield* Effect.updateService(Effect.result(second), Service, (service) => ({
          ...service,
          ...(isGone && { readResults: () => Effect.fail(throttled(503)) }),
        }))
        const rows = place.history.store.runs.get("own.2026-11-22")?.rows
        return [third._tag === "Failure" ? `${third.failure}` : third.success.exit_code, rows]
      })
    }
    const whole = of(false, false)
    expect(whole).toEqual([0, expect.objectContaining({ other_records: 3 })])
    expect(of(true, false)).toEqual(whole)
    expect(of(true, true)).toEqual([expect.stringMatching("which the ledger refers to"), undefined])
  })

  it("stay damage, of which nothing is deleted, where the service does not show the execution [promise 2 lost bodies]", () => {
    const silent: Read = () => Effect.fail(throttled(503))
    const strange: Read = Effect.map((answer) =>
      "view" in answer ? { ...answer, view: { ...answer.view, customer_id: anId("another") } } : answer,
    )
    for (const read of [silent, strange]) {
      const { exit, deleted, rows } = told("records-3", cutAt(0), read)
      const damage = expect.stringMatching("which the ledger refers to")
      expect([exit, deleted, rows]).toEqual([damage, false, undefined])
    }
  })
})

describe("a job whose service has another address", () => {
  const remote: Job["service"] = {
    _tag: "Remote",
    base_url: "https://new.example/api",
    flows_url: "https://new.example/flows",
    attachments_url: "https://new.example/flows",
    app_secret: { _tag: "Env", name: "APP_SECRET" },
  }
  /** A night whose deletion is refused, and one at the new address; then what is told and left. */
  const moved = (isOther: boolean) =>
    live(makeNights(), function* () {
      const job = jobFor("records-1")
      const refusing = Effect.updateService(nightOf(job), Service, (service) => ({
        ...service,
        deleteExecution: () => Effect.succeed("still_running" as const),
      }))
      yield* refusing
      yield* wait(1)
      const ledger = yield* Ledger
      const first = yield* ledger.state((yield* ledger.runs)[0]?.fact.run_id ?? anId(""))
      const before = [...(first?.tasks.values() ?? [])].flatMap(({ attempts }) => attempts)[0]?.execution_id
      const atNew = { ...job, service: remote }
      const preview = (yield* previewNight(atNew, options)).elsewhere
      const second = yield* Effect.updateService(nightOf(atNew), Service, (service) => ({
        ...service,
        readExecution: (id: ExecutionId) =>
          isOther && id === before
            ? Effect.succeed({ _tag: "NotFound" } as const)
            : service.readExecution(id),
      }))
      const [older] = yield* ledger.runs
      const warnings = second.warnings.filter((one) => /executions-elsewhere/.test(one))
      return { preview, deleted: second.deleted, exit_code: older?.ended?.exit_code, warnings }
    })
  const preview = [{ run_id: "tokens.2026-11-21", service: "sandbox", executions: 1 }]

  it("deletes there what it shows as its own", () => {
    expect(moved(false)).toEqual({ preview, deleted: [true, true], exit_code: 0, warnings: [] })
  })

  it("leaves what it does not show, and says where that is and what to do [run elsewhere]", () => {
    expect(moved(true)).toEqual({
      preview,
      deleted: [false, true],
      exit_code: 4,
      warnings: [
        "not found at the service that the job names now: 1 execution of tokens.2026-11-21, " +
          "started at sandbox [executions-elsewhere]",
      ],
    })
  })
})

describe("a kept execution", () => {
  const kindSource = (name: string, family: string): ResultsSource => ({
    ...builtInSources[1]!,
    name,
    path: `/executions/results/{execution_id}/${family}/v1/records`,
    families: [`${family}:*`],
    records: ["records"],
    final: "is_final",
  })

  it("is read again by the next run, without a start, and deleted once everything is here [promise 5 kept]", () => {
    const job = jobFor("records-3")
    const reading: Reading = { flow_api: "absent", result_kinds: "present" }
    const nights = live(makeNights(reading), function* () {
      const first = yield* nightOf(job)
      yield* wait(1)
      // The engineer found the endpoint that brings them.
      const sources = [...builtInSources, kindSource("persons", "customer_information")]
      const second = yield* nightOf({ ...job, sources })
      const ledger = yield* Ledger
      const [oldest] = yield* ledger.runs
      const facts = (yield* ledger.facts(oldest?.fact.run_id ?? anId(""))).map(({ fact }) => fact)
      const settled = facts.flatMap((fact) => (fact._tag === "TaskSettled" ? [fact.reason] : []))
      const drained = facts.flatMap((fact) => (fact._tag === "AttemptDrained" ? [fact.proof] : []))
      return { first, second, settled, drained, ended: oldest?.ended }
    })
    expect([nights.first.verdict, nights.first.deleted]).toEqual([short, [false]])
    expect([nights.second.verdict, nights.second.deleted, nights.second.broken]).toEqual([
      "succeeded COMPLETED nobody",
      [true, true],
      [],
    ])
    expect(nights.settled).toEqual(["RECORDS_SHORT", "COMPLETED"])
    expect(nights.drained).toEqual([
      { basis: "counted", families: [{ family: profile, counted: 3, landed: 3 }] },
    ])
    expect(nights.ended).toMatchObject({ exit_code: 0, leftovers: false, kept: 0 })
  })

  it("is read before a rerun starts anything, which sends no login for what is then here [decision rerun kept] [rerun perhaps]", () => {
    const job = jobFor("records-3")
    const other = { ...jobFor("records-3").assignments[0]!, customer_id: anId("c-2") }
    const reading: Reading = { flow_api: "absent", result_kinds: "present" }
    const told = live(makeNights(reading), function* () {
      const first = yield* runNight({ ...job, assignments: [...job.assignments, other] }, options)
      const sources = [...builtInSources, kindSource("persons", "customer_information")]
      const only = new Set([...first.state.tasks.values()].map(subjectOf))
      const asked = { ...options, further: true, parent: first.run_id, only }
      const healed = { ...job, sources, assignments: [...job.assignments, other] }
      const said = yield* previewNight(healed, asked)
      const rerun = yield* runNight(healed, asked)
      const { executions } = yield* (yield* Sandbox).truth
      return {
        first: [...first.state.tasks.values()].map(({ settled }) => settled?.fact.reason),
        said: [said.starting.length, said.followed.length, said.read.size],
        listed: splitSelection([...first.state.tasks.values()], said).rows.map(
          ({ customer_id, condition }) => [customer_id, condition],
        ),
        rerun: [rerun.run_id === first.run_id, rerun.exit_code],
        starts: executions.length,
      }
    })
    expect(told).toEqual({
      first: ["RECORDS_SHORT", "RECORDS_SHORT"],
      said: [0, 2, 2],
      listed: ["c-1", "c-2"].map((id) => [
        id,
        "what is kept at the service is read first; it is started again if that is not all",
      ]),
      rerun: [true, 0],
      starts: 2,
    })
  })

  it("is told by the nights after it, too, whatever they keep themselves [decision kept before]", () => {
    const told = live(makeNights(), function* () {
      const warnings: Array<ReadonlyArray<string>> = []
      const jobs = ["noflow+records-3", "noflow+records-3", "records-1"].map((words) => jobFor(words))
      const [kept] = jobs as [Job]
      // What is not asked for results deletes only what it started itself.
      const without = { ...kept, flow_results: { ...kept.flow_results, enabled: false } }
      for (const job of [...jobs, without]) {
        const night = yield* nightOf(job)
        warnings.push(night.warnings.filter((one) => /executions-/.test(one)))
        if (job === without) expect(night.deleted).toEqual([false, false, true, true])
        yield* wait(1)
      }
      return warnings
    })
    const own =
      "1 execution kept at the service, because records may be missing here; " +
      "2 counted records not returned [executions-kept]"
    const before = (executions: string) =>
      `${executions} of earlier nights kept at the service, as data may be missing here; ` +
      "oldest: tokens.2026-11-21 [executions-kept-before]"
    const unread =
      "2 executions kept at the service and not read, as `flow_results` is off in the job [executions-unread]"
    const two = before("2 executions")
    expect(told).toEqual([[own], [own, before("1 execution")], [two], [two, unread]])
  })

  it("is not published again while there is nothing new [run nothing new]", () => {
    const job = jobFor("noflow+records-3")
    const place = makeNights()
    const looks = live(place, function* () {
      const sandbox = yield* Sandbox
      const ledger = yield* Ledger
      yield* nightOf(job)
      const [first] = yield* ledger.runs
      const run_id = first?.fact.run_id ?? ""
      const published = () => place.history.versions.filter((version) => version.run_id === run_id).length
      const factsOf = Effect.map(ledger.facts(anId(run_id)), (facts) => facts.length)
      const before = { facts: yield* factsOf, published: published() }
      const seen: Array<unknown> = []
      const asked = Effect.map(sandbox.truth, ({ executions }) => executions.length)
      for (let day = 0; day < 2; day += 1) {
        yield* wait(1)
        yield* nightOf(job)
        seen.push({ facts: yield* factsOf, published: published() })
      }
      return { before, seen, starts: yield* asked }
    })
    expect(looks.seen).toEqual([looks.before, looks.before])
    expect(looks.starts).toBe(3)
  })
})

describe("an older run with a damaged body", () => {
  const told = (failure: PublishFailed) =>
    live(makeNights(), function* () {
      const cut = yield* Effect.forkChild(runNight(jobOf([customer("c-1", "queue-1+run-600")]), options))
      yield* Effect.sleep("1 minute")
      yield* Fiber.interrupt(cut)
      yield* wait(1)
      const real = yield* Publisher
      const publish: (typeof real)["publish"] = (run_id) =>
        run_id === "tokens.2026-11-21" ? Effect.fail(failure) : real.publish(run_id)
      const damaged = { ...real, publish }
      const job: Job = jobOf([customer("c-2", "queue-1+run-1")])
      const night = Effect.exit(
        Effect.map(runNight(job, options), ({ run_id, exit_code, state, night, unpublished }) => ({
          told: [run_id, exit_code, state.ended?.exit_code],
          unpublished,
          warning: withUnpublished(summarise(state, night), unpublished),
        })),
      )
      const first = yield* Effect.provideService(night, Publisher, damaged)
      const { executions } = yield* Effect.flatMap(Sandbox, ({ truth }) => truth)
      const deleted = executions.map(({ customer_id, deleted_at }) => [customer_id, deleted_at !== undefined])
      // A copy of the body is there again.
      const { exit_code, others } = yield* runNight(job, options)
      return { first, deleted, next: [exit_code, others.map(({ run_id }) => run_id)] }
    })

  it("is told and stays at the service, and the night takes place and ends with 4 [run unpublished]", () => {
    const why = "landing/tokens.2026-11-21/segment-000001.njl: the body at offset 7 is not what was landed"
    const { first, ...rest } = told(new PublishFailed({ message: why, damaged: true }))
    if (Exit.isFailure(first)) throw new Error(String(first.cause))
    const { warning, ...night } = first.value
    expect({ ...night, ...rest }).toEqual({
      told: ["tokens.2026-11-22", 4, 0],
      unpublished: [{ run_id: "tokens.2026-11-21", why }],
      deleted: [
        ["c-1", false],
        ["c-2", true],
      ],
      next: [0, ["tokens.2026-11-21"]],
    })
    expect([warning.warnings[0], warning.finish]).toEqual([
      `tokens.2026-11-21 could not be published: ${why} [run-unpublished]`,
      { command: undefined, why: expect.stringMatching(/^Restore a copy of what `nightjar verify` names/) },
    ])
  })

  it("is another thing than a damaged ledger or a full disk, which stop the night [run unpublished ledger]", () => {
    const isFailed = (failure: PublishFailed) => Exit.isFailure(told(failure).first)
    expect([
      isFailed(ledgerFailed(new LedgerFailed({ message: "fact 7 has changed", damaged: true }))),
      isFailed(new PublishFailed({ message: "no space left on device" })),
    ]).toEqual([true, true])
  })
})

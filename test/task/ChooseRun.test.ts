/** Which run a command works on, and what it brings home first. */
import { describe, expect, it } from "vitest"
import type { RunHeader } from "../../src/ledger/FoldRun.ts"
import { chooseRun } from "../../src/task/ChooseRun.ts"
import { runStarted } from "../harness/Facts.ts"

const hour = 60 * 60_000
const day = 24 * hour
const now = Date.UTC(2026, 10, 21, 2)

/** A run by its end: a number is an exit code, undefined means that it was cut off. */
const run = (
  run_id: string,
  ago: number,
  end: number | undefined,
  more: {
    readonly parent?: string
    readonly part?: string
    readonly leftovers?: boolean
    readonly kept?: number
    readonly job?: string
  } = {},
): RunHeader => ({
  seq: 1,
  at: now - ago,
  fact: runStarted(run_id, { job: more.job ?? "job", parent: more.parent, part: more.part }),
  ended:
    end === undefined
      ? undefined
      : { at: now, exit_code: end, leftovers: more.leftovers ?? false, kept: more.kept ?? 0 },
  newest_at: now,
})
const job = { name: "job", night: undefined, deadline: undefined, timezone: "UTC" }
const choose = (runs: ReadonlyArray<RunHeader>, further = false) => {
  const { run_date, ...choice } = chooseRun({ runs, job, now, further })
  expect(run_date).toBe("2026-11-21")
  return choice
}

const anew = (run_id: string, ...collect: ReadonlyArray<string>) => ({
  chosen: { _tag: "New", run_id },
  collect,
})
const resume = (run_id: string, ...collect: ReadonlyArray<string>) => ({
  chosen: { _tag: "Resume", run_id },
  collect,
})

const yesterday = "job.2026-11-20"
const today = "job.2026-11-21"

describe("run", () => {
  it("[run waited date] means the date at which it was given, however long it waited for the folder", () => {
    const waited = { runs: [], job, now, further: false, waitedMs: 3 * hour }
    expect(chooseRun(waited)).toEqual({ run_date: "2026-11-20", ...anew(yesterday) })
  })

  it("begins the run of the date if there is none, whatever other jobs did", () => {
    expect(choose([])).toEqual(anew(today))
    expect(choose([run(today, hour, undefined, { job: "other" })])).toEqual(anew(today))
    expect(choose([run(yesterday, day, 0)])).toEqual(anew(today))
  })

  it("resumes an unfinished run younger than twenty hours, and after that only collects what it left [run 20 hours]", () => {
    expect(choose([run(yesterday, 3 * hour, undefined)])).toEqual(resume(yesterday))
    expect(choose([run(yesterday, 20 * hour - 1, 4)])).toEqual(resume(yesterday))
    expect(choose([run(today, hour, 4)])).toEqual(resume(today))
    expect(choose([run(yesterday, 20 * hour, undefined)])).toEqual(anew(today, yesterday))
    expect(choose([run(yesterday, 21 * hour, 4, { leftovers: true })])).toEqual(anew(today, yesterday))
    expect(choose([run(yesterday, 21 * hour, 4)])).toEqual(anew(today))
    expect(choose([run(today, 22 * hour, 4)])).toEqual(anew(`${today}.2`))
  })

  it("collects kept executions for thirty days, and executions in flight forever [run kept executions]", () => {
    const kept = (days: number) => choose([run("job.2026-09-01", days * day, 3, { kept: 1 })])
    expect(kept(29)).toEqual(anew(today, "job.2026-09-01"))
    expect(kept(30)).toEqual(anew(today))
    const left = run("job.2026-09-01", 90 * day, 3, { kept: 2, leftovers: true })
    expect(choose([left])).toEqual(anew(today, "job.2026-09-01"))
  })

  it("collects what runs of jobs that it replaces left, and resumes none of them [run replaced]", () => {
    const runs = [
      run("old.2026-11-19", 2 * day, 0),
      run("old.2026-11-20", hour, undefined, { job: "old" }),
      run("mid.2026-11-20", day, 3, { job: "mid", leftovers: true }),
      run("own.2026-11-20", day, undefined, { job: "own" }),
    ]
    const chosen = (...replaces: ReadonlyArray<string>) =>
      chooseRun({ runs, job: { ...job, replaces }, now, further: false })
    expect(chosen()).toEqual({ run_date: "2026-11-21", ...anew(today) })
    expect(chosen("old", "mid")).toEqual({
      run_date: "2026-11-21",
      ...anew(today, "old.2026-11-20", "mid.2026-11-20"),
    })
  })

  it.each([0, 3])("does nothing where the run of the date is finished with %i", (exit_code) => {
    expect(choose([run(yesterday, day, undefined), run(today, 30 * hour, exit_code)])).toEqual({
      chosen: { _tag: "NothingToDo", run_id: today },
      collect: [yesterday],
    })
  })

  it("resumes the newest unfinished run, even before a later one, and never a rerun's parent", () => {
    expect(choose([run(yesterday, 5 * hour, undefined), run(today, hour, undefined)])).toEqual(
      resume(today, yesterday),
    )
    expect(choose([run(today, 2 * hour, 4), run(`${today}.2`, hour, 0)])).toEqual(resume(today))
    const parent = run(today, 2 * hour, 4)
    expect(choose([parent, run(`${today}.2`, hour, 4, { parent: today })])).toEqual(resume(`${today}.2`))
    expect(choose([parent, run(`${today}.2`, hour, 3, { parent: today })])).toEqual({
      chosen: { _tag: "NothingToDo", run_id: `${today}.2` },
      collect: [],
    })
    expect(choose([run(today, 2 * hour, undefined), run(`${today}.2`, hour, 3, { parent: today })])).toEqual({
      chosen: { _tag: "NothingToDo", run_id: `${today}.2` },
      collect: [today],
    })
  })

  it("resumes a run that seems to begin in the future because the clock was set back [promise 9 clock jumps]", () => {
    expect(choose([run(today, -2 * hour, undefined)])).toEqual(resume(today))
    expect(choose([run(today, -2 * day, undefined)])).toEqual(anew(`${today}.2`, today))
  })

  it("begins a night whose date a fast clock has reached before, once a later run shows that [promise 9 date taken]", () => {
    const early = run(today, hour, 0)
    expect(choose([early]).chosen._tag).toBe("NothingToDo")
    expect(choose([early, run(yesterday, day, 0)])).toEqual(anew(`${today}.2`))
    expect(choose([run(today, hour, 4, { leftovers: true }), run(yesterday, day, 0)])).toEqual(
      anew(`${today}.2`, today),
    )
    expect(choose([early, run(yesterday, day, 0), run(`${today}.2`, 0, 0)]).chosen).toEqual({
      _tag: "NothingToDo",
      run_id: `${today}.2`,
    })
  })
})

describe("a rerun", () => {
  it("that was cut off is as old as the first run of its night, and a further run that was asked for as old as it is", () => {
    const cut = (hours: number) => [
      run(yesterday, hours * hour, 3),
      run(`${yesterday}.2`, hour, undefined, { parent: yesterday }),
    ]
    expect(choose(cut(19))).toEqual(resume(`${yesterday}.2`))
    expect(choose(cut(20))).toEqual(anew(today, `${yesterday}.2`))
    const further = [run(yesterday, 21 * hour, 3), run(`${yesterday}.2`, hour, undefined)]
    expect(choose(further)).toEqual(resume(`${yesterday}.2`))
  })

  it("has the date of the run that it repeats, and the next free number of that night [run rerun date]", () => {
    const runs = [run(yesterday, day, 3), run(today, hour, 0)]
    const input = { runs, job, now, further: true }
    expect(chooseRun({ ...input, parent: yesterday })).toEqual({
      run_date: "2026-11-20",
      ...anew(`${yesterday}.2`),
    })
    expect(chooseRun({ ...input, parent: "job.2026-11-01" })).toEqual({
      run_date: "2026-11-21",
      ...anew(`${today}.2`),
    })
  })
})

describe("a run of a part of a job", () => {
  const part = `${today}.2`
  const cut = run(part, hour, undefined, { part })
  const ofPart = (runs: ReadonlyArray<RunHeader>, parent?: string) =>
    chooseRun({ runs, job, now, further: true, parent, isPart: parent === undefined })

  it("leaves the night its name and what it has begun; cut off, it is only collected; rerun, it is a part [part night] [part starts] [part cut] [part rerun]", () => {
    const night = { run_date: "2026-11-21", ...anew(part), part }
    expect([ofPart([]), ofPart([run(today, hour, undefined)])]).toEqual([night, night])
    expect(choose([run(part, hour, 0, { part })])).toEqual(anew(today))
    expect(choose([cut])).toEqual(anew(today, part))
    expect(ofPart([cut])).toMatchObject(anew(`${today}.3`, part))
    expect(ofPart([run(part, hour, 3, { part })], part)).toMatchObject({ ...anew(`${today}.3`), part })
  })
})

describe("run with a deadline", () => {
  const timed = { ...job, deadline: "07:00" }
  const chooseTimed = (runs: ReadonlyArray<RunHeader>, hours: number) => {
    const { chosen, collect } = chooseRun({ runs, job: timed, now: now + hours * hour, further: false })
    return { chosen, collect }
  }

  it("resumes until the deadline of the run, and only collects after it [run deadline]", () => {
    const begun = run(today, hour, undefined)
    expect(chooseTimed([begun], 4)).toEqual(resume(today))
    expect(chooseTimed([begun], 5)).toEqual({
      chosen: { _tag: "NothingToDo", run_id: today },
      collect: [today],
    })
    expect(chooseTimed([run(yesterday, 6 * hour, 4)], 5)).toEqual(anew(today))
  })
})

describe("run of a job with a night", () => {
  const nightly = { ...job, night: { starts: "01:00", until: "05:00" } }
  const chooseNightly = (runs: ReadonlyArray<RunHeader>, hours = 0) => {
    const { chosen, collect } = chooseRun({ runs, job: nightly, now: now + hours * hour, further: false })
    return { chosen, collect }
  }

  it("resumes the run of this night however late it is, also one that could not begin, and no finished or earlier one", () => {
    const begun = run(today, hour, 4)
    expect(chooseNightly([begun], 22.9)).toEqual(resume(today))
    expect(chooseNightly([begun], 23)).toEqual(anew("job.2026-11-22"))
    expect(chooseNightly([run(yesterday, 2 * hour, undefined)])).toEqual(anew(today, yesterday))
    expect(chooseNightly([run(today, hour, 6)])).toEqual(resume(today))
    expect(chooseNightly([run(today, hour, 3, { kept: 1 })])).toEqual({
      chosen: { _tag: "NothingToDo", run_id: today },
      collect: [],
    })
  })
})

describe("run of a job whose hours were changed", () => {
  /** At 02:00, three hours after the night began; in other hours, the runs below have its date. */
  const moved = { ...job, night: { starts: "23:00", until: "07:00" } }
  const chooseMoved = (...runs: ReadonlyArray<RunHeader>) => {
    const { chosen, collect } = chooseRun({ runs, job: moved, now, further: false })
    return { chosen, collect }
  }
  const begun = (hoursBefore: number) => 3 * hour + hoursBefore * hour
  const nothing = (run_id: string) => ({ chosen: { _tag: "NothingToDo", run_id }, collect: [] })

  it("begins the night although a run that began before it has its date [promise 16 hours]", () => {
    const later = anew(`${yesterday}.2`)
    expect(chooseMoved(run(yesterday, begun(20), 0))).toEqual(later)
    expect(chooseMoved(run(yesterday, begun(9), 3))).toEqual(later)
    const unfinished = run(yesterday, begun(9), 4, { leftovers: true })
    expect(chooseMoved(unfinished)).toEqual(anew(`${yesterday}.2`, yesterday))
    expect(chooseMoved(run(yesterday, begun(9), 0), run(`${yesterday}.2`, hour, undefined))).toEqual(
      resume(`${yesterday}.2`),
    )
    expect(chooseMoved(run(yesterday, begun(9), 0), run(`${yesterday}.2`, hour, 0))).toEqual(
      nothing(`${yesterday}.2`),
    )
  })

  it("takes no rerun of such a run for the night, and each one of the night's own [promise 16 reruns]", () => {
    const early = run(yesterday, begun(9), 3)
    const rerun = (end: number | undefined) => run(`${yesterday}.2`, hour, end, { parent: yesterday })
    expect(chooseMoved(early, rerun(0))).toEqual(anew(`${yesterday}.3`))
    expect(chooseMoved(early, rerun(undefined))).toEqual(anew(`${yesterday}.3`, `${yesterday}.2`))
    const night = run(`${yesterday}.2`, 2 * hour, 3)
    const own = (end: number) => run(`${yesterday}.3`, hour, end, { parent: `${yesterday}.2` })
    expect(chooseMoved(early, night, own(0))).toEqual(nothing(`${yesterday}.3`))
    expect(chooseMoved(early, night, own(4))).toEqual(resume(`${yesterday}.3`))
  })

  it("does not repeat a night that is finished and began up to an hour before its new hours", () => {
    expect(chooseMoved(run(yesterday, begun(1), 0))).toEqual(nothing(yesterday))
    // Nothing more of it would start: its deadline was that of the night before.
    expect(chooseMoved(run(yesterday, begun(1), 4))).toEqual(anew(`${yesterday}.2`))
  })

  it("means the night in which it was given, however long it waited for the folder", () => {
    const waited = { runs: [run(today, 9 * hour, 0)], job: moved, further: false, waitedMs: 25 * hour }
    expect(chooseRun({ ...waited, now: now + 24 * hour }).chosen).toEqual({ _tag: "New", run_id: yesterday })
    const taken = [run(yesterday, 2 * hour, 0)]
    expect(chooseRun({ ...waited, runs: taken, now: now + 24 * hour })).toMatchObject(nothing(yesterday))
  })
})

it("run --new and rerun begin another run with the next free number, and collect the others first", () => {
  const runs = [run(today, 3 * hour, 0), run(`${today}.2`, 2 * hour, undefined)]
  expect(choose(runs, true)).toEqual(anew(`${today}.3`, `${today}.2`))
  expect(choose([run(`${today}.2`, hour, 0)], true)).toEqual(anew(today))
  expect(choose([], true)).toEqual(anew(today))
})

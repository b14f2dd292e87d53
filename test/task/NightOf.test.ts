/** Dates and times of a night in its zone, whatever the calendar and the clocks do in between. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { deadlineOf, runDateAt, startsPossibleUntil, waitsUntil, windowOf } from "../../src/task/ChooseRun.ts"
import { localDate, localTime, nextTimeOfDay } from "../../src/task/ChooseRun.ts"
import type { JobTimes } from "../../src/task/ChooseRun.ts"

const timezone = "Europe/Madrid"
const night = { starts: "22:30", until: "07:00" }
const job = { night, deadline: undefined, timezone }
const at = (time: string) => Date.parse(time)
const iso = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString())

describe("the date of a run", () => {
  it("is that of the evening on which its night started, until the next one starts; else the calendar's [run night]", () => {
    expect(
      [
        "2026-11-20T21:29:59Z",
        "2026-11-20T21:30:00Z",
        "2026-11-20T23:32:00Z",
        "2026-11-21T05:59:00Z",
        "2026-11-21T11:00:00Z",
        "2026-11-21T21:29:59Z",
        "2026-11-21T21:30:00Z",
      ].map((time) => runDateAt(at(time), job)),
    ).toEqual([19, 20, 20, 20, 20, 20, 21].map((day) => `2026-11-${day}`))
    const plain = { ...job, night: undefined }
    expect(
      ["2026-11-20T22:59:59Z", "2026-11-20T23:00:00Z"].map((time) => runDateAt(at(time), plain)),
    ).toEqual(["2026-11-20", "2026-11-21"])
  })

  it("never goes back and skips no day while the clocks change, in any zone and for any hours of the night", () => {
    const hour = 60 * 60_000
    // Every one of these zones that changes its clocks does so in one of these weeks.
    const changes = [
      ["2026-03-26", "2026-04-08"],
      ["2026-09-03", "2026-09-09"],
      ["2026-10-01", "2026-10-08"],
      ["2026-10-22", "2026-10-28"],
    ] as const
    const time = fc.integer({ min: 0, max: 95 }).map((quarter) => {
      return new Date(quarter * 15 * 60_000).toISOString().slice(11, 16)
    })
    fc.assert(
      fc.property(
        fc.constantFrom(timezone, "America/Bogota", "Australia/Lord_Howe", "America/Santiago", "UTC"),
        time,
        time,
        (zone, starts, until) => {
          const times = { night: { starts, until }, deadline: undefined, timezone: zone }
          for (const [from, to] of changes) {
            const dates: Array<string> = []
            for (let now = at(from); now < at(to); now += 2 * hour) dates.push(runDateAt(now, times))
            expect(dates).toEqual(dates.toSorted())
            const days = (at(dates.at(-1)!) - at(dates[0]!)) / (24 * hour)
            expect(new Set(dates).size).toBe(days + 1)
          }
        },
      ),
      { numRuns: 6, seed: 7 },
    )
  })
})

describe("a night", () => {
  it("waits for its service until it ends by the clock, and not outside its hours [run night waits]", () => {
    expect(
      ["2026-11-20T21:30:00Z", "2026-11-21T05:59:59Z", "2026-11-21T06:00:00Z", "2026-11-21T12:00:00Z"].map(
        (time) => iso(waitsUntil(at(time), job)),
      ),
    ).toEqual(["2026-11-21T06:00:00.000Z", "2026-11-21T06:00:00.000Z", undefined, undefined])
    expect(waitsUntil(at("2026-11-20T22:00:00Z"), { ...job, night: undefined })).toBe(undefined)
    const until = (time: string) => iso(waitsUntil(at(time), job))
    expect(until("2026-03-28T21:30:00Z")).toBe("2026-03-29T05:00:00.000Z")
    expect(until("2026-10-24T20:30:00Z")).toBe("2026-10-25T06:00:00.000Z")
  })

  it("may start executions until it ends or until its deadline, and a late run until the next night", () => {
    const deadline = (started: string, now: string, more = {}) =>
      iso(deadlineOf({ ...job, ...more }, { started_at: at(started), now: at(now) }))
    const begun = "2026-11-20T21:30:00Z"
    expect(deadline(begun, begun)).toBe("2026-11-21T06:00:00.000Z")
    expect(deadline(begun, begun, { deadline: "04:00" })).toBe("2026-11-21T03:00:00.000Z")
    expect(deadline(begun, "2026-11-21T08:00:00Z")).toBe("2026-11-21T21:30:00.000Z")
    expect(deadline("2026-11-21T08:00:00Z", "2026-11-21T08:00:00Z")).toBe("2026-11-21T21:30:00.000Z")
    // What an older night left is only collected.
    expect(deadline(begun, "2026-11-21T21:30:00Z")).toBe("2026-11-21T06:00:00.000Z")
    expect(deadline(begun, begun, { night: undefined })).toBe(undefined)
    expect(deadline(begun, "2026-11-21T08:00:00Z", { night: undefined, deadline: "07:00" })).toBe(
      "2026-11-21T06:00:00.000Z",
    )
  })
})

describe("a night of nearly a day whose end the clocks skip", () => {
  it("[run night skipped end] ends when the next one starts, and not half an hour later", () => {
    const long = { ...job, night: { starts: "03:00", until: "02:30" } }
    const begun = at("2027-03-27T02:00:00Z")
    expect(iso(deadlineOf(long, { started_at: begun, now: begun }))).toBe("2027-03-28T01:00:00.000Z")
  })
})

describe("the time for starts", () => {
  const hours = (of: JobTimes, time: string) => windowOf(of, at(time)) / 3_600_000

  it("is that of the whole night, however late its run begins, or what is left before the deadline", () => {
    expect(hours(job, "2026-11-20T21:30:00Z")).toBe(8.5)
    expect(hours(job, "2026-11-21T05:00:00Z")).toBe(8.5)
    expect(hours({ ...job, deadline: "05:00" }, "2026-11-21T03:00:00Z")).toBe(6.5)
    // After the night's end it may start executions until the next one begins.
    expect(hours(job, "2026-11-21T09:00:00Z")).toBe(24)
    const plain = { ...job, night: undefined }
    expect(hours({ ...plain, deadline: "07:00" }, "2026-11-21T05:00:00Z")).toBe(1)
    expect(hours(plain, "2026-11-21T05:00:00Z")).toBe(Infinity)
  })
})

it("a start that finds the folder in use may wait for it until the last of its jobs starts nothing more, and never into another night", () => {
  const until = (time: string, ...jobs: ReadonlyArray<JobTimes>) => {
    const ms = startsPossibleUntil(jobs, at(time))
    return ms === Infinity ? "for ever" : iso(ms)
  }
  const early = { ...job, deadline: "05:00" }
  const plain = { ...job, night: undefined }
  expect([
    until("2026-11-20T21:30:00Z", job),
    until("2026-11-21T05:59:59Z", job),
    until("2026-11-21T06:00:00Z", job),
    until("2026-11-20T21:30:00Z", early),
    until("2026-11-20T21:30:00Z", early, job),
    until("2026-11-20T21:30:00Z", { ...plain, deadline: "05:00" }),
    until("2026-11-20T21:30:00Z", job, plain),
  ]).toEqual([
    "2026-11-21T06:00:00.000Z",
    "2026-11-21T06:00:00.000Z",
    "2026-11-21T21:30:00.000Z",
    "2026-11-21T04:00:00.000Z",
    "2026-11-21T06:00:00.000Z",
    "2026-11-21T04:00:00.000Z",
    "for ever",
  ])
})

const next = (iso: string, timeOfDay: string) =>
  new Date(nextTimeOfDay(at(iso), timeOfDay, timezone)).toISOString()

describe("the date of a run", () => {
  it("is that of the job's time zone, or of the machine's, beside a time of two digits each", () => {
    expect(localDate(at("2026-11-20T22:59:59Z"), timezone)).toBe("2026-11-20")
    expect(localDate(at("2026-11-20T23:00:00Z"), timezone)).toBe("2026-11-21")
    expect(localDate(at("2026-07-20T22:00:00Z"), timezone)).toBe("2026-07-21")
    expect(localDate(at("2026-11-20T23:30:00Z"), "America/Bogota")).toBe("2026-11-20")
    expect(localTime(at("2026-11-20T08:03:59Z"), timezone)).toBe("09:03")
    const noon = at("2026-11-20T12:00:00Z")
    const machine = new Intl.DateTimeFormat("en-CA", { dateStyle: "short" }).format(noon)
    expect([localDate(noon, undefined), localDate(noon, "No/Where")]).toEqual([machine, machine])
  })
})

describe("the deadline of a run", () => {
  it("is the next one that the clocks show: an hour later if they skip it, the first if they show it twice [promise 9 daylight saving]", () => {
    expect(next("2026-11-21T01:00:00Z", "07:00")).toBe("2026-11-21T06:00:00.000Z")
    expect(next("2026-11-21T06:00:01Z", "07:00")).toBe("2026-11-22T06:00:00.000Z")
    expect(next("2026-11-21T06:00:00Z", "07:00")).toBe("2026-11-22T06:00:00.000Z")
    expect(next("2026-12-31T23:30:00Z", "07:00")).toBe("2027-01-01T06:00:00.000Z")
    expect(next("2026-03-28T23:00:00Z", "07:00")).toBe("2026-03-29T05:00:00.000Z")
    expect(next("2026-10-24T22:00:00Z", "07:00")).toBe("2026-10-25T06:00:00.000Z")
    expect(next("2026-03-28T23:00:00Z", "02:30")).toBe("2026-03-29T01:30:00.000Z")
    expect(next("2026-10-24T22:00:00Z", "02:30")).toBe("2026-10-25T00:30:00.000Z")
    expect(next("2026-10-25T00:45:00Z", "02:30")).toBe("2026-10-26T01:30:00.000Z")
  })

  it("is always within the next 26 hours, whatever the moment and the zone", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: at("2026-01-01"), max: at("2027-12-31") }),
        fc.integer({ min: 0, max: 1_439 }),
        fc.constantFrom(timezone, "America/Bogota", "Australia/Lord_Howe", "Pacific/Apia", "UTC"),
        (moment, minute, zone) => {
          const text = new Date(minute * 60_000).toISOString().slice(11, 16)
          const wait = nextTimeOfDay(moment, text, zone) - moment
          expect(wait).toBeGreaterThan(0)
          expect(wait).toBeLessThanOrEqual(26 * 60 * 60_000)
        },
      ),
    )
  })
})

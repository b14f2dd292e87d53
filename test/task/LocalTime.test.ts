/** Dates and deadlines in the job's time zone, over both changes of its clocks. */
import { describe, expect, it } from "vitest"
import * as fc from "fast-check"
import { localDate, localTime, nextTimeOfDay } from "../../src/task/ChooseRun.ts"

const madrid = "Europe/Madrid"
const at = (iso: string) => Date.parse(iso)
const next = (iso: string, timeOfDay: string, timezone = madrid) =>
  new Date(nextTimeOfDay(at(iso), timeOfDay, timezone)).toISOString()

describe("the date of a run", () => {
  it("is the date in the job's time zone", () => {
    expect(localDate(at("2026-11-20T22:59:59Z"), madrid)).toBe("2026-11-20")
    expect(localDate(at("2026-11-20T23:00:00Z"), madrid)).toBe("2026-11-21")
    expect(localDate(at("2026-07-20T22:00:00Z"), madrid)).toBe("2026-07-21")
    expect(localDate(at("2026-11-20T23:30:00Z"), "America/Bogota")).toBe("2026-11-20")
  })

  it("is told beside the time of day, with two digits each", () => {
    expect(localTime(at("2026-11-20T08:03:59Z"), madrid)).toBe("09:03")
  })

  it("is the machine's if the zone is missing or unknown", () => {
    const noon = at("2026-11-20T12:00:00Z")
    const machine = new Intl.DateTimeFormat("en-CA", { dateStyle: "short" }).format(noon)
    expect([localDate(noon, undefined), localDate(noon, "No/Where")]).toEqual([machine, machine])
  })
})

describe("the deadline of a run", () => {
  it("is today if it is yet to come, otherwise tomorrow; a run that begins on it has a day", () => {
    expect(next("2026-11-21T01:00:00Z", "07:00")).toBe("2026-11-21T06:00:00.000Z")
    expect(next("2026-11-21T06:00:01Z", "07:00")).toBe("2026-11-22T06:00:00.000Z")
    expect(next("2026-11-21T06:00:00Z", "07:00")).toBe("2026-11-22T06:00:00.000Z")
    expect(next("2026-12-31T23:30:00Z", "07:00")).toBe("2027-01-01T06:00:00.000Z")
  })

  it("is what the clocks show, even on nights when they change [promise 9 daylight saving]", () => {
    expect(next("2026-03-28T23:00:00Z", "07:00")).toBe("2026-03-29T05:00:00.000Z")
    expect(next("2026-10-24T22:00:00Z", "07:00")).toBe("2026-10-25T06:00:00.000Z")
  })

  it("is an hour later if the clocks skip it, and the first one if they show it twice [promise 9 daylight saving]", () => {
    expect(next("2026-03-28T23:00:00Z", "02:30")).toBe("2026-03-29T01:30:00.000Z")
    expect(next("2026-10-24T22:00:00Z", "02:30")).toBe("2026-10-25T00:30:00.000Z")
    expect(next("2026-10-25T00:45:00Z", "02:30")).toBe("2026-10-26T01:30:00.000Z")
  })

  it("is always within the next 26 hours, whatever the moment and the zone", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: at("2026-01-01"), max: at("2027-12-31") }),
        fc.integer({ min: 0, max: 1_439 }),
        fc.constantFrom(madrid, "America/Bogota", "Australia/Lord_Howe", "Pacific/Apia", "UTC"),
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

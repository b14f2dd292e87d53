/** The running night on screens of several sizes, and as one line: whole output, nothing cut in the middle. */
import { describe, expect, it } from "vitest"
import type { EnginePicture, NightPicture } from "../../src/task/NightPicture.ts"
import { renderNight, renderNightLine } from "../../src/report/RenderSummary.ts"
import { engineRow, pictureOf } from "./Samples.ts"

const at = Date.UTC(2026, 10, 21, 23, 30)
const minute = 60_000

const engine = (engine_reference: string, more: Partial<EnginePicture> = {}) =>
  engineRow(engine_reference, {
    tasks: 1_500,
    queued: 800,
    waiting: { time: 3, engine: 0, conflict: 2 },
    running: 20,
    done: { succeeded: 650, partial: 5, failed: 20, skipped: 0, unfinished: 0 },
    per_hour: 610.5,
    slowest: { task_id: "nightly.2026-11-21/c-0012/es-bank:api", running_ms: 47 * minute },
    ...more,
  })

const waiting = { time: 0, engine: 120, conflict: 0 }
const picture = pictureOf("nightly.2026-11-21", {
  at,
  began_at: at - 66 * minute,
  deadline_at: at + 450 * minute,
  expected_end_at: at + 90 * minute,
  service: { last_answer_at: at - 3_000 },
  limits: { max_in_flight: 40, per_engine: 20 },
  job_limits: { max_in_flight: 100, per_engine: 20 },
  total: engine("total", { tasks: 1_620, queued: 800, waiting: { time: 3, engine: 120, conflict: 2 } }),
  engines: [
    engine("es-bank:api"),
    engineRow("es-social-security:website", { tasks: 120, waiting, closed_until: at + 10 * minute }),
  ],
})
const screen = { width: 79, height: 24, colour: false, timezone: "UTC" }

describe("the running night", () => {
  it("fits 80 columns", () => {
    expect(renderNight(picture, screen).join("\n")).toBe(`nightly.2026-11-21: executing
23:30, after 1 h 6 min

675 of 1620 tasks done, 650 succeeded, 5 partial, 20 failed
20 running (at most 40, and 20 per engine), 800 queued
125 waiting: 3 to be tried again, 120 for an engine, 2 for another task
610.5 tasks per hour, expected end 01:00, deadline 07:00
the service answers; last 3 s ago

engine                   tasks  queued  waiting  running  done  not ok  slowest
es-bank:api               1500     800        5       20   675      25  47 min
es-social-security:web…    120       0      120        0     0       0  offline`)
  })

  it("says what was published of it, and when", () => {
    const published = { at: at - 4 * minute, version: 12, tasks: 640 }
    const without = renderNight(picture, screen)
    expect(renderNight({ ...picture, published }, screen)).toEqual([
      ...without.slice(0, 7),
      "640 tasks published at 23:26, as version 12",
      ...without.slice(7),
    ])
    expect(renderNightLine({ ...picture, published })).toBe(`${renderNightLine(picture)}, 640 published`)
  })

  it("shows rates and the slowest task on 200 columns", () => {
    expect(
      renderNight(picture, { ...screen, width: 199 })
        .slice(9)
        .join("\n"),
    ).toBe(`engine                      tasks  queued  waiting  running  done  not ok  per hour  slowest
es-bank:api                  1500     800        5       20   675      25     610.5  47 min  c-0012/es-bank:api
es-social-security:website    120       0      120        0     0       0         0  offline until 23:40`)
  })

  it("says what the operator asked for, and that nothing is expected meanwhile", () => {
    const { expected_end_at: _, ...paused } = picture
    const first = (night: NightPicture) => renderNight(night, screen)[0]
    expect([
      first({ ...paused, state: "paused", paused_until: at + 480 * minute }),
      first({ ...paused, state: "draining" }),
      first({ ...paused, stage: "publishing", state: "draining" }),
    ]).toEqual([
      "nightly.2026-11-21: executing, paused until 07:30 at the latest",
      "nightly.2026-11-21: executing, draining: nothing more is started",
      "nightly.2026-11-21: publishing",
    ])
  })

  it("says since when the service has given no usable answer, or asks for fewer calls", () => {
    const line = (service: NightPicture["service"]) => renderNight({ ...picture, service }, screen)[7]
    expect([
      line({ last_answer_at: at, silent_since: at - 45_000, throttled_since: at - 60_000 }),
      line({ last_answer_at: at, throttled_since: at - 60_000 }),
      line({}),
    ]).toEqual([
      "the service has given no usable answer since 23:29 (45 s)",
      "the service has asked for fewer calls since 23:29",
      "the service has not been called yet",
    ])
  })

  it("never needs more lines or columns than there are, counts what is hidden, and lets no name move the cursor", () => {
    const odd = renderNight({ ...picture, engines: [engine("es\u001b[2J-bank\r\n:api")] }, screen)
    expect(odd.join("")).not.toMatch(/\p{Cc}/u)
    const engines = Array.from({ length: 60 }, (_, index) => engine(`engine-${index}:website`))
    const shown = renderNight({ ...picture, engines }, screen)
    expect([shown.length, shown.at(-1)]).toEqual([24, "and 47 more engines"])
    for (const width of [20, 40, 79, 199])
      for (const height of [1, 5, 10, 50]) {
        const lines = renderNight({ ...picture, engines }, { ...screen, width, height })
        expect(lines.length).toBeLessThanOrEqual(height)
        expect(lines.every((line) => line.length <= width)).toBe(true)
      }
  })

  it("is one line where nobody draws", () => {
    expect([renderNightLine(picture), renderNightLine({ ...picture, state: "paused" })]).toEqual([
      "nightly.2026-11-21: executing, 675/1620 done, 20 running, 800 queued, 125 waiting, 650 succeeded, " +
        "5 partial, 20 failed",
      "nightly.2026-11-21: executing (paused), 675/1620 done, 20 running, 800 queued, 125 waiting, " +
        "650 succeeded, 5 partial, 20 failed",
    ])
  })

  it("says in that line what is wrong at the service and how far the tables are; beside others it is short", () => {
    const [silent_since, built] = [at - 45_000, { done: 12, runs: 400 }]
    expect(renderNightLine({ ...picture, service: { silent_since } })).toMatch(
      /, 20 failed, no usable answer since \d\d:29$/,
    )
    expect(renderNightLine({ ...picture, service: { throttled_since: at } })).toMatch(
      /, throttled since \d\d:30$/,
    )
    expect(renderNightLine({ ...picture, stage: "publishing", built }, true)).toBe(
      "nightly.2026-11-21: publishing, 675/1620 done, 12 of 400 runs in the tables",
    )
  })
})

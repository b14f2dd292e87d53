/**
 * What `doctor` asks a job's service: whether it takes the secret, whether its clock agrees with this
 * machine's, and whether the flow events that somebody subscribed are switched on. Reads only, no login.
 */
import { Clock, Effect } from "effect"
import { HttpClient } from "effect/http"
import { counted } from "../base/Text.ts"
import type { Job } from "../jobs/Job.ts"
import { failed, ok, warning } from "./Health.ts"
import type { Check } from "./Health.ts"
import { Wiring } from "./Wiring.ts"
import type { Through } from "./Wiring.ts"

/** A date has whole seconds, and an answer takes a few. */
const clockSecondsMax = 30

/** Remembers by how many seconds this machine's clock is ahead of the service's. */
const makeClockReader = () => {
  let ahead: number | undefined
  const through: Through = HttpClient.tap((response) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const at = Date.parse(response.headers["date"] ?? "")
      if (Number.isFinite(at)) ahead = Math.round((now - at) / 1_000)
    }),
  )
  return { through, ahead: () => ahead }
}

const clockCheck = (what: string, ahead: number | undefined): Check => {
  if (ahead === undefined) return ok(what, "the service does not tell the time")
  const seconds = Math.abs(ahead)
  if (seconds <= clockSecondsMax) return ok(what, "agrees with the service's")
  return warning(what, "clock-differs", {
    seconds: counted(seconds, "second"),
    way: ahead > 0 ? "ahead of" : "behind",
  })
}

const subscriptionsCheck = Effect.fnUntraced(function* (job: Job) {
  if (job.service._tag === "Embedded") return []
  const what = `${job.path}: flow events`
  const wiring = yield* Wiring
  const { Subscriptions } = yield* Effect.promise(() => import("../client/Subscriptions.ts"))
  return yield* Effect.flatMap(Subscriptions, ({ list }) => list).pipe(
    Effect.provide(wiring.subscriptions(job.service)),
    Effect.match({
      onSuccess: (all) => {
        const off = all.filter(({ enabled }) => !enabled).map(({ event }) => event)
        return off.length === 0
          ? [ok(what, all.length === 0 ? "none is subscribed" : `${all.length} subscribed`)]
          : [warning(what, "hooks-disabled", { events: off.join(", ") })]
      },
      // The reference marks the listing as deprecated: a run needs it as little as the events themselves.
      onFailure: () => [ok(what, "the service does not list subscriptions")],
    }),
  )
})

export const serviceChecks = Effect.fnUntraced(function* (job: Job, output: string) {
  const wiring = yield* Wiring
  const { Service } = yield* Effect.promise(() => import("../client/Service.ts"))
  const what = `${job.path}: service`
  const where = job.service._tag === "Remote" ? new URL(job.service.base_url).host : "the embedded service"
  const clock = makeClockReader()
  const answered = yield* Effect.flatMap(Service, (service) => service.listEngines).pipe(
    Effect.provide(wiring.plan(job.service, output, clock.through)),
    Effect.match({
      onSuccess: () => ok(what, `${where} answers and takes the application secret`),
      onFailure: ({ message }) => failed(what, "service-unusable", { detail: message }),
    }),
  )
  if (answered.verdict !== "ok" || job.service._tag === "Embedded") return [answered]
  return [answered, clockCheck(`${job.path}: clock`, clock.ahead()), ...(yield* subscriptionsCheck(job))]
})

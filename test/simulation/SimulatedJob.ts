/**
 * A job for a simulated night, made from the seed: customers whose behaviour words cover every end, shared and
 * rejected credentials, engines that are away, unknown, or need a person.
 */
import { Duration, Redacted } from "effect"
import { statusReasonsByCode } from "../../src/service/Vocabulary.ts"
import { standingSessionId } from "../../src/sandbox/flows/StandingSessions.ts"
import type { Assignment, Job } from "../../src/jobs/Job.ts"
import { anId } from "../harness/Id.ts"
import { jobOf } from "../harness/SmallNights.ts"

const minute = 60_000
const hour = 60 * minute

const temporary = [...statusReasonsByCode.TEMPORARY_ERROR, "SYSTEM_CANCELLED"]
const final = [
  ...statusReasonsByCode.AUTH_ERROR,
  ...statusReasonsByCode.UNHANDLED_AUTH_ERROR,
  ...statusReasonsByCode.CONFIGURATION_ERROR,
  ...statusReasonsByCode.ABORTED,
  "FAILED",
]

export const pick = <T>(random: () => number, values: ReadonlyArray<T>): T => {
  const value = values[Math.floor(random() * values.length)]
  if (value === undefined) throw new Error("nothing to pick from")
  return value
}

/** Words for one customer: how long it takes, how it ends, and what is odd about it. */
export const behaviour = (random: () => number): string => {
  const times = [
    random() < 0.7 ? `queue-${Math.floor(random() ** 3 * 9_000)}` : "",
    random() < 0.8 ? `run-${1 + Math.floor(random() ** 2 * 900)}` : "",
    random() < 0.1 ? `async-${Math.floor(random() * 3_000)}` : "",
  ]
  const fate = random()
  const end =
    fate < 0.45
      ? `records-${Math.floor(random() * 12)}`
      : fate < 0.6
        ? `end-${pick(random, final)}`
        : fate < 0.7
          ? `end-${pick(random, temporary)}`
          : fate < 0.8
            ? `heal-${1 + Math.floor(random() * 3)}-${pick(random, temporary)}`
            : fate < 0.85
              ? "challenge-1234"
              : fate < 0.9
                ? "partial"
                : "ok"
  const oddities = [
    "odd",
    "attach-2",
    "noflow",
    "unstarted",
    "late-120",
    "locked-30",
    "neverfinal",
    "foreign-600",
  ]
  const oddity = random() < 0.35 ? pick(random, oddities) : ""
  const stubborn = random() < 0.03 ? "unstoppable-30000" : ""
  return [...times, end, oddity, stubborn].filter((word) => word !== "").join("+")
}

const engines = [
  "sandbox-bank:website",
  "sandbox-bank:website",
  "sandbox-bank:website",
  "sandbox-tax:website",
  "sandbox-tax:website",
  "sandbox-always:website",
  "sandbox-maintenance:website",
  "nobody-knows:website",
]

const assignment = (
  random: () => number,
  index: number,
  {
    number,
    logins,
    tokens,
  }: { readonly number: number; readonly logins: Array<string>; readonly tokens: boolean },
): Assignment => {
  const known = logins.length > 0 && random() < 0.08
  const username = known ? pick(random, logins) : `${behaviour(random)}+customer-${number}`
  if (!known) logins.push(username)
  const password = random() < 0.02 ? "abc" : "a-secret-password"
  const literal = (value: unknown) => ({ _tag: "Literal", value: Redacted.make(value) }) as const
  return {
    customer_id: anId(`c-${String(number).padStart(4, "0")}`),
    engine_reference: anId(index < 3 ? pick(random, engines.slice(5)) : pick(random, engines.slice(0, 5))),
    features: [],
    configurations: {},
    hooks_extra_data: {},
    login: {
      _tag: "Parameters",
      parameters: { username: literal(username), password: literal(password) },
      tokenized_access: tokens && random() < 0.6,
    },
    source: `simulation:${number}`,
  }
}

/** Flow sessions that customers ran themselves: scripts of the embedded service, those of its seed included. */
const standingSessions = (random: () => number): Job["sessions"] =>
  random() < 0.6
    ? []
    : Array.from({ length: 1 + Math.floor(random() * 6) }, (_, index) => ({
        session_id: anId(standingSessionId(Math.floor(random() ** 2 * 4_000) + index * 5_000)),
        customer_id: random() < 0.5 ? undefined : anId(`c-9${index}`),
        place: { file: "job.yaml", line: 1, column: 1 },
      }))

/** `numbersFrom`: the number of its first customer, by which those of several jobs differ. */
export const makeJob = (random: () => number, customers: number, tokens: boolean, numbersFrom = 0): Job => {
  const logins: Array<string> = []
  return {
    ...jobOf([]),
    name: "simulated",
    path: "simulated.yaml",
    service: { _tag: "Embedded", seed: 1, speed: 1, faults: undefined },
    execution: {
      execution_timeout: Duration.seconds(1_200),
      unlock_protected_data: false,
      max_wait: Duration.millis(3.5 * hour),
    },
    concurrency: { max_in_flight: pick(random, [5, 40, 1_000]), per_engine: pick(random, [3, 30, 1_000]) },
    polling: {
      min: Duration.millis(pick(random, [2_000, 15_000, minute])),
      max: Duration.minutes(pick(random, [1, 5, 15])),
    },
    // By number, because a drawn one would change every seed.
    night: customers % 3 === 0 ? { starts: "21:00", until: "07:00" } : undefined,
    ...(customers % 4 === 1 ? { publish: { every: Duration.minutes(10) } } : {}),
    deadline: random() < 0.2 ? pick(random, ["03:00", "07:00"]) : undefined,
    timezone: "Europe/Madrid",
    after_export: random() < 0.9 ? "delete" : "keep",
    assignments: Array.from({ length: customers }, (_, index) =>
      assignment(random, index, { number: numbersFrom + index, logins, tokens }),
    ),
    tokens_key: tokens ? { _tag: "Env", name: "NIGHTJAR_TOKEN_KEY" } : undefined,
    sessions: standingSessions(random),
  }
}

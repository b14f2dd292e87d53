/**
 * Every row of "What happens with each end" as a customer of the fake: what the service does, and the outcome, the
 * reason, who acts, the executions and the exit code that users were promised for it.
 */
import { ended, html, profileOf, resultsBody, stateBody, working } from "./FakeService.ts"
import type { Script } from "./FakeService.ts"

export interface EndRow {
  readonly id: string
  readonly script: Script
  readonly engine?: string
  /** outcome, reason, who_acts, executions, exit code. */
  readonly expected: readonly [string, string, string, number, 0 | 3 | 4]
  /** Whether an execution stays at the service after the night. */
  readonly kept?: true
  /** As `tasks` tells them, where that is not the number of executions. */
  readonly attempts?: number
}

const ends = (code: string, reason: string, fields = {}): Script => ({
  state: (execution) => (execution.looks === 1 ? working(execution) : ended(execution, code, reason, fields)),
})

const row = (
  id: string,
  script: Script,
  expected: EndRow["expected"],
  more: Partial<EndRow> = {},
): EndRow => ({ id, script, expected, ...more })

const authReasons = [
  "INCORRECT_CREDENTIALS",
  "INCORRECT_MFA",
  "BLOCKED_USER",
  "FRIEZED_CREDENTIALS",
  "CHANGE_PASSWORD",
  "MANUAL_INTERVENTION",
  "INCOMPATIBLE_ACCESS",
  "DUPLICATED_SESSION",
]
const configurationReasons = [
  "BAD_CONFIGURATIONS",
  "INCORRECT_PARAMETERS_FORMAT",
  "INCORRECT_RESUME_FORMAT",
  "ENCRYPTION_ERROR",
  "T10N_FORBIDDEN",
  "T10N_NOT_AVAILABLE",
  "T10N_REJECTED",
  "T10N_EXCEPTION",
]
const temporaryReasons = [
  "OUT_OF_SERVICE",
  "ENGINE_UNAVAILABLE",
  "ALREADY_EXECUTING",
  "ENGINE_BANNED",
  "AUTO_CAPTCHA_ERROR",
  "PROXY_ERROR",
  "NETWORK_ERROR",
  "INTERNAL_ERROR",
]
const customerAborts = ["CUSTOMER_INTERVENTION_REQUIRED", "ACTION_TIMEOUT", "USER_CANCELLED"]
const noLogin = { authentication_status: "not-performed" }

const refused = (status: number, body: unknown): Script => ({ start: () => ({ status, body }) })

const served: ReadonlyArray<EndRow> = [
  row("completed", {}, ["succeeded", "COMPLETED", "nobody", 1, 0]),
  row("partial", ends("PARTIAL", "PARTIAL"), ["partial", "PARTIAL", "engineer", 1, 3]),
  row("failed", ends("FAILED", "FAILED"), ["failed", "FAILED", "engineer", 1, 3]),
  row("timeout", ends("ABORTED", "TIMEOUT", noLogin), ["failed", "TIMEOUT", "engineer", 1, 3]),
  row("sys-cancelled", ends("ABORTED", "SYSTEM_CANCELLED", noLogin), [
    "unfinished",
    "SYSTEM_CANCELLED",
    "service",
    2,
    4,
  ]),
  ...temporaryReasons.map((reason) =>
    row(`tmp-${reason}`, ends("TEMPORARY_ERROR", reason, noLogin), ["unfinished", reason, "service", 2, 4]),
  ),
  ...authReasons.map((reason) =>
    row(`auth-${reason}`, ends("AUTH_ERROR", reason, { authentication_status: reason }), [
      "failed",
      reason,
      "customer",
      1,
      3,
    ]),
  ),
  row("auth-silent", ends("AUTH_ERROR", "INCORRECT_CREDENTIALS", { authentication_status: null }), [
    "failed",
    "INCORRECT_CREDENTIALS",
    "customer",
    1,
    3,
  ]),
  ...customerAborts.map((reason) =>
    row(`ab-${reason}`, ends("ABORTED", reason, noLogin), ["failed", reason, "customer", 1, 3]),
  ),
  ...configurationReasons.map((reason) =>
    row(`conf-${reason}`, ends("CONFIGURATION_ERROR", reason, noLogin), ["failed", reason, "engineer", 1, 3]),
  ),
  row("conf-proxy", ends("CONFIGURATION_ERROR", "BAD_PROXY_CONFIGURATION", noLogin), [
    "unfinished",
    "BAD_PROXY_CONFIGURATION",
    "service",
    1,
    4,
  ]),
  row("unhandled", ends("UNHANDLED_AUTH_ERROR", "UNHANDLED_AUTH_ERROR", noLogin), [
    "failed",
    "UNHANDLED_AUTH_ERROR",
    "engineer",
    1,
    3,
  ]),
  row("unlisted-reason", ends("FAILED", "A_REASON_OF_TOMORROW", noLogin), [
    "failed",
    "A_REASON_OF_TOMORROW",
    "engineer",
    1,
    3,
  ]),
  row("unlisted-code", ends("PAUSED_FOR_EVER", "A_REASON_OF_TOMORROW", noLogin), [
    "failed",
    "A_REASON_OF_TOMORROW",
    "engineer",
    1,
    3,
  ]),
]

const starts: ReadonlyArray<EndRow> = [
  row("start-400", refused(400, { status_code: "CONFIGURATION_ERROR", status_reason: "T10N_FORBIDDEN" }), [
    "failed",
    "T10N_FORBIDDEN",
    "engineer",
    0,
    3,
  ]),
  row(
    "start-400-person",
    refused(400, { status_code: "ABORTED", status_reason: "CUSTOMER_INTERVENTION_REQUIRED" }),
    ["failed", "CUSTOMER_INTERVENTION_REQUIRED", "engineer", 0, 3],
  ),
  row("start-422", refused(422, { detail: [{ loc: ["body"], msg: "no", type: "value_error" }] }), [
    "failed",
    "BAD_CONFIGURATIONS",
    "engineer",
    0,
    3,
  ]),
  row("start-503", { start: () => ({ status: 503, body: { detail: "engine away" } }) }, [
    "unfinished",
    "ENGINE_UNAVAILABLE",
    "service",
    0,
    4,
  ]),

  row(
    "start-409-foreign",
    {
      start: (_, { customer_id, engine_reference }) => ({
        status: 409,
        body: {
          customer_id,
          engine_reference,
          status_code: "TEMPORARY_ERROR",
          status_reason: "ALREADY_EXECUTING",
          execution_id: "somebody-elses",
          session_id: "somebody-elses-session",
          external_execution_id: "theirs",
        },
      }),
    },
    ["unfinished", "ALREADY_EXECUTING", "service", 0, 4],
  ),
  // Its own run is there although the answer was lost: the probe finds it, with and without the external id.
  row(
    "start-lost-once",
    { start: (n) => (n === 1 ? { status: 202, drop: true, created: true } : undefined) },
    ["succeeded", "COMPLETED", "nobody", 1, 0],
  ),
  row("start-500-once", { start: (n) => (n === 1 ? { ...html, created: true } : undefined) }, [
    "succeeded",
    "COMPLETED",
    "nobody",
    1,
    0,
  ]),
  // A 409 that names no external id: the state of that execution tells that it is ours.
  row(
    "start-409-ours",
    {
      start: (n, { customer_id, engine_reference }) =>
        n === 1
          ? { status: 202, drop: true, created: true }
          : {
              status: 409,
              body: {
                customer_id,
                engine_reference,
                status_code: "TEMPORARY_ERROR",
                status_reason: "ALREADY_EXECUTING",
                execution_id: "exec-start-409-ours-fake-bank-website-1",
                session_id: null,
              },
            },
    },
    ["succeeded", "COMPLETED", "nobody", 1, 0],
  ),
  // One execution was asked for, and nobody knows whether it is there.
  row(
    "start-lost-twice",
    { start: () => ({ status: 202, drop: true }) },
    ["unfinished", "START_UNKNOWN", "engineer", 0, 4],
    { attempts: 1 },
  ),
]

const withoutExecution: ReadonlyArray<EndRow> = [
  row("eng-unknown", {}, ["skipped", "ENGINE_UNKNOWN", "engineer", 0, 3], { engine: "not-there:website" }),
  row("eng-always", {}, ["skipped", "CUSTOMER_INTERVENTION_REQUIRED", "engineer", 0, 3], {
    engine: "fake-always:website",
  }),
  ...["away", "offline", "maintenance"].map((word) =>
    row(`eng-${word}`, {}, ["unfinished", "ENGINE_UNAVAILABLE", "service", 0, 4], {
      engine: `fake-${word}:website`,
    }),
  ),
]

const counted = { products_count: { "customer_information:user_profile@customer_information": 1 } }

const odd: ReadonlyArray<EndRow> = [
  row(
    "tmp-then-well",
    {
      state: (execution) =>
        execution.number === 1 ? ended(execution, "TEMPORARY_ERROR", "NETWORK_ERROR", noLogin) : undefined,
    },
    ["succeeded", "COMPLETED", "nobody", 2, 0],
  ),
  row(
    "open-in-200",
    {
      state: (execution) =>
        execution.looks < 3
          ? { ...working(execution), status: 200, headers: { "content-type": "text/plain" } }
          : undefined,
    },
    ["succeeded", "COMPLETED", "nobody", 1, 0],
  ),
  row(
    "closed-in-202",
    { state: (execution) => ({ ...ended(execution, "COMPLETED", "COMPLETED"), status: 202 }) },
    ["succeeded", "COMPLETED", "nobody", 1, 0],
  ),
  row(
    "state-of-tomorrow",
    { state: (execution) => (execution.looks < 3 ? working(execution, "POLISHING") : undefined) },
    ["succeeded", "COMPLETED", "nobody", 1, 0],
  ),
]

const time: ReadonlyArray<EndRow> = [
  row(
    "unstoppable",
    {
      state: (execution) => (execution.open ? working(execution) : undefined),
      abort: ({ aborts }) => (aborts < 3 ? { status: 409, body: { detail: "not now" } } : undefined),
    },
    ["unfinished", "CLIENT_CANCELLED", "service", 1, 4],
  ),
  row("max-wait", { state: (execution) => working(execution, "WAITING") }, [
    "unfinished",
    "CLIENT_CANCELLED",
    "service",
    1,
    4,
  ]),
  row(
    "challenge",
    {
      state: () => ({
        status: 423,
        body: {
          form_schema: { type: "object", format: "cg-params", properties: { code: { type: "string" } } },
          action_required_expires: "2099-01-01T00:00:00Z",
          producer: "engine",
        },
      }),
    },
    ["failed", "CUSTOMER_INTERVENTION_REQUIRED", "customer", 1, 3],
  ),
]

const results: ReadonlyArray<EndRow> = [
  row(
    "never-final",
    { results: (execution) => resultsBody([profileOf(execution.customer_id)], { is_closed: false }) },
    ["unfinished", "RESULTS_PARTIAL", "service", 1, 4],
    { kept: true },
  ),
  row(
    "became-final",
    {
      results: (execution) =>
        resultsBody(
          [profileOf(execution.customer_id, { alias: `read ${execution.reads}` })],
          execution.reads === 1 ? { is_closed: false } : {},
        ),
    },
    ["succeeded", "COMPLETED", "nobody", 1, 0],
  ),
  ...([404, 412] as const).flatMap((status) => [
    row(
      `flow-${status}`,
      { ...ends("COMPLETED", "COMPLETED", counted), results: () => ({ status, body: {} }) },
      ["partial", "RECORDS_UNREACHABLE", "engineer", 1, 3],
      { kept: true },
    ),
    row(
      `flow-${status}-profile`,
      {
        ...ends("COMPLETED", "COMPLETED", counted),
        results: () => ({ status, body: {} }),
        profile: (execution) => ({ status: 200, body: profileOf(execution.customer_id) }),
      },
      ["succeeded", "COMPLETED", "nobody", 1, 0],
    ),
    row(`flow-${status}-nothing`, { results: () => ({ status }) }, [
      "succeeded",
      "COMPLETED",
      "nobody",
      1,
      0,
    ]),
  ]),
  row("flow-504", { results: ({ reads }) => (reads === 1 ? { status: 504, text: "" } : undefined) }, [
    "succeeded",
    "COMPLETED",
    "nobody",
    1,
    0,
  ]),
]

const storms: ReadonlyArray<EndRow> = [
  row(
    "start-503-once",
    { start: (n) => (n === 1 ? { status: 503, headers: { "retry-after": "1" } } : undefined) },
    ["succeeded", "COMPLETED", "nobody", 1, 0],
  ),
  row(
    "start-429-often",
    { start: (n) => (n < 4 ? { status: 429, headers: n === 2 ? { "retry-after": "1" } : {} } : undefined) },
    ["succeeded", "COMPLETED", "nobody", 1, 0],
  ),
  row("flow-429", { results: ({ reads }) => (reads === 1 ? { status: 429 } : undefined) }, [
    "succeeded",
    "COMPLETED",
    "nobody",
    1,
    0,
  ]),
  row(
    "state-storm",
    {
      state: (execution) =>
        [{ status: 429 }, html, { status: 503 }, { status: 200, drop: true as const }, { status: 404 }][
          execution.looks - 1
        ] ?? undefined,
    },
    ["succeeded", "COMPLETED", "nobody", 1, 0],
  ),
  row(
    "delete-storm",
    {
      remove: ({ removals }) => [{ status: 429 }, { status: 503 }, html][removals - 1],
    },
    ["succeeded", "COMPLETED", "nobody", 1, 0],
  ),
  row(
    "kicked",
    {
      state: (execution) =>
        execution.looks === 1
          ? {
              status: 202,
              body: stateBody(execution, {
                status_code: "ONGOING",
                status_reason: "ASYNC_WAIT",
                is_closed: false,
                next_kick_date: "2000-01-01T00:00:00Z",
              }),
            }
          : undefined,
    },
    ["succeeded", "COMPLETED", "nobody", 1, 0],
  ),
]

export const endRows: ReadonlyArray<EndRow> = [
  ...served,
  ...starts,
  ...withoutExecution,
  ...odd,
  ...time,
  ...results,
]

/** Apart from the others: a service that complains is asked more slowly. */
export const stormRows = storms

/**
 * The part of `nightjar sandbox --help` about files of faults. It is separate from the schema, so that help
 * loads no contract; a test compares the two.
 */

const kinds = [
  [
    "status: 503",
    "answers with this status; optional: `body: TEXT`, `retry_after: 30 seconds`, `applied: true`",
  ],
  [
    "delay: 2 seconds",
    "answers late, in the service's own time; can be combined with any other except `hang`",
  ],
  ["reset: before", "breaks the connection before anything happens"],
  ["reset: after", "breaks the connection after the call took effect: its answer is lost"],
  ["cut: 0.5", "sends only this share of the body, then breaks the connection"],
  [
    "malformed: true",
    "takes effect, but answers with a body that is not JSON; `body: TEXT` alone sends that text",
  ],
  ["hang: true", "accepts the call and never answers"],
] as const

const endpoints = [
  "startExecution startTokenized readExecution pollExecution resumeExecution",
  "abortExecution deleteExecution readProfile exchangeTicket readToken revokeToken",
  "listEngines showEngine readFlowResults downloadAttachment listFlowHooks",
  "createFlowHooks updateFlowHooks deleteFlowHooks",
] as const

export const faultHelp = [
  "--faults FILE lists in YAML what goes wrong; for each call, the first fault that applies is used:",
  "",
  "  seed: 7",
  "  faults:",
  "    - { on: startExecution, rate: 0.05, status: 503, retry_after: 30 seconds }",
  '    - { on: "*", customer: c-0001, first: 3, reset: before }',
  "    - { on: [readExecution, readFlowResults], script: [2, 5], cut: 0.5 }",
  "",
  "`on` names endpoints; `customer`, `engine` and `application` (an app_id) narrow it. When: `rate` (a share",
  "of the calls, drawn from the seed), `script` (these calls, counted from 1) or `first`; else always. What:",
  "",
  ...kinds.map(([key, meaning]) => `  ${key.padEnd(18)}${meaning}`),
  "",
  "Endpoints:",
  ...endpoints.map((names) => `  ${names}`),
  "",
  "GET /admin on the same port shows what happened and which rules callers broke; /admin/truth as JSON.",
].join("\n")

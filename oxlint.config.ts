/**
 * What the linter enforces beyond its own defaults: the order of the rooms (a room imports only rooms above
 * it), the one room that knows DuckDB and Promises, time and randomness through Effect's services, and the
 * sizes of the house.
 * `test/project/boundaries.test.ts` breaks every one of these rules once and expects a complaint.
 */

/** From top to bottom: architecture's list. */
const rooms = [
  "contract",
  "secrets",
  "duckdb",
  "jobs",
  "ledger",
  "planning",
  "scheduling",
  "client",
  "landing",
  "records",
  "execution",
  "publishing",
  "report",
  "acquaint",
  "sandbox",
  "cli",
] as const
type Room = (typeof rooms)[number]

/** The rooms that decide and never touch the machine: what they need of it comes through services. */
const pureRooms: ReadonlyArray<Room> = ["contract", "planning", "scheduling", "execution", "report"]

/** The embedded service is a stranger to the pipeline: it shares nothing with it but the contract. */
const visibleFrom = (room: Room): ReadonlyArray<Room> =>
  room === "sandbox" ? ["contract"] : rooms.slice(0, rooms.indexOf(room))

const forbid = (regex: string, message: string) => ({ regex, message })
const upwards = "^(?:\\.{1,2}/)+"

const machinery =
  "^(?:node:)?(?:child_process|dns|fs|https?|http2|net|os|process|stream|timers|tls|worker_threads)(?:/|$)"
const everywhere = [
  forbid("^(?:vitest|@effect/vitest|fast-check|effect/testing)(?:/|$)", "Only tests may import this."),
  forbid(`${upwards}(?:test|dist)/`, "Sources stand alone: nothing here imports tests or built files."),
]
const onlyDuckdb = forbid("^(?:@duckdb/.*|p-limit)$", "Only src/duckdb knows DuckDB and Promises.")
const onlyLedger = forbid("^(?:node:)?sqlite$", "Only src/ledger knows SQLite.")

const importsOf = (room: Room) => {
  const visible = visibleFrom(room)
  const hidden = rooms.filter((other) => other !== room && !visible.includes(other))
  const top = room === "cli" ? "main" : "(?:Nightly|Settings|main)"
  return [
    ...everywhere,
    ...(hidden.length === 0
      ? []
      : [
          forbid(`${upwards}(?:${hidden.join("|")})/`, `src/${room} may import only: ${visible.join(", ")}.`),
        ]),
    forbid(`${upwards}${top}\\.ts$`, "A room is wired from above and never looks up."),
    ...(room === "duckdb" ? [] : [onlyDuckdb]),
    ...(room === "ledger" ? [] : [onlyLedger]),
    ...(pureRooms.includes(room) ? [forbid(machinery, `src/${room} decides; a service acts.`)] : []),
  ]
}

/** One override: these imports are refused in these files. A later override replaces an earlier one. */
const refuse = (files: string, patterns: ReadonlyArray<{ regex: string; message: string }>) => ({
  files: [files],
  rules: { "no-restricted-imports": ["error", { patterns }] },
})

const service = (name: string) => `Time, randomness, ids and output come from Effect's services (${name}).`
const globals = {
  setTimeout: "Effect.sleep",
  setInterval: "Schedule",
  setImmediate: "Effect.yieldNow",
  queueMicrotask: "Effect.yieldNow",
  fetch: "HttpClient",
  console: "Effect.log or Stdio",
}
const properties = [
  ["Date", "now", "Clock"],
  ["Math", "random", "Random"],
  ["performance", "now", "Clock"],
  ["process", "hrtime", "Clock"],
  ["crypto", "randomUUID", "Random"],
] as const

export default {
  plugins: ["typescript", "unicorn", "oxc", "import"],
  categories: { correctness: "error" },
  ignorePatterns: ["dist/**", "output/**", "node_modules/**"],
  rules: {
    "import/no-cycle": "error",
    "typescript/no-explicit-any": "error",
    // A preallocated array is what hot loops want.
    "unicorn/no-new-array": "off",
  },
  overrides: [
    {
      files: ["src/**/*.ts", "test/**/*.ts"],
      rules: { "import/no-default-export": "error" },
    },
    {
      files: ["src/**/*.ts"],
      rules: {
        "max-lines": ["error", { max: 300 }],
        "max-lines-per-function": ["error", { max: 70 }],
        "no-restricted-globals": [
          "error",
          {
            globals: Object.entries(globals).map(([name, by]) => ({ name, message: service(by) })),
            checkGlobalObject: true,
          },
        ],
        "no-restricted-properties": [
          "error",
          ...properties.map(([object, property, by]) => ({ object, property, message: service(by) })),
        ],
      },
    },
    // Generators of Effect need no yield: a program without effects is still a program.
    { files: ["src/**/*.ts", "test/**/*.ts"], rules: { "require-yield": "off" } },
    ...rooms.map((room) => refuse(`src/${room}/**/*.ts`, importsOf(room))),
    refuse("src/landing/{Landing,LandingMemory}.ts", [
      ...importsOf("landing"),
      forbid(machinery, "The port and its memory layer serve simulated nights: no disk here."),
    ]),
    refuse("src/*.ts", [
      ...everywhere,
      onlyDuckdb,
      onlyLedger,
      forbid("^\\./(?:cli/|main\\.ts$)", "Commands and wiring stand below the pipeline."),
    ]),
    refuse("src/main.ts", [...everywhere, onlyDuckdb, onlyLedger]),
  ],
}

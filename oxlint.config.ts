/**
 * What the linter enforces beyond its own defaults: the order of the rooms, inside the embedded service too,
 * the rooms that know DuckDB, Arrow, SQLite and the machine, time and randomness through Effect's services,
 * and the sizes of the house.
 * `test/project/boundaries.test.ts` breaks every one of these rules once and expects a complaint.
 */

/** From top to bottom: a room imports only rooms above it. */
const rooms = [
  "base",
  "service",
  "messages",
  "sandbox",
  "privacy",
  "jobs",
  "ledger",
  "client",
  "tokens",
  "landing",
  "records",
  "task",
  "tables",
  "report",
  "folder",
  "run",
  "cli",
] as const
type Room = (typeof rooms)[number]

/** The inside of the embedded service, from bottom to top. */
const sandboxRooms = [
  "state",
  "engines",
  "data",
  "faults",
  "readings",
  "core",
  "executions",
  "tokens",
  "flows",
  "hooks",
  "admin",
  "server",
] as const
type SandboxRoom = (typeof sandboxRooms)[number]

/** The rooms that decide and never touch the machine: what they need of it comes through services. */
const pureRooms: ReadonlyArray<Room> = ["service", "task", "report"]
/** The rooms that read and write tables. */
const tableRooms: ReadonlyArray<Room> = ["base", "jobs", "records", "tables", "cli"]
/** The rooms with a file of SQLite: facts, tokens, and the lock of a folder. */
const sqliteRooms: ReadonlyArray<Room> = ["ledger", "tokens", "base"]

/**
 * The embedded service is a stranger to the pipeline: they share the contract and what knows nothing of either, and
 * only the commands know both.
 */
const visibleFrom = (room: Room): ReadonlyArray<Room> =>
  room === "sandbox"
    ? ["base", "service"]
    : rooms.slice(0, rooms.indexOf(room)).filter((other) => other !== "sandbox" || room === "cli")

const forbid = (regex: string, message: string) => ({ regex, message })

const machinery =
  "^(?:node:)?(?:child_process|dns|fs|https?|http2|net|os|process|stream|timers|tls|worker_threads)(?:/|$)"
const everywhere = [
  forbid("^(?:vitest|@effect/vitest|fast-check|effect/testing)(?:/|$)", "Only tests may import this."),
  forbid(
    "^(?:\\.{1,2}/)+(?:test|dist|src)/",
    "Sources stand alone: nothing here imports tests or built files, or names src.",
  ),
]
const onlyDuckdb = forbid("^(?:@duckdb/.*|p-limit)$", "Only src/base knows DuckDB and Promises.")
const onlyTables = forbid(
  "^(?:apache-arrow|parquet-wasm)(?:/|$)",
  "Only rooms of tables load Arrow and Parquet.",
)
const onlySqlite = forbid("^(?:node:)?sqlite$", "Only the ledger, the token store and the lock know SQLite.")
const neverUp = forbid("^(?:\\.\\./)+main\\.ts$", "A room is wired from above and never looks up.")

const among = (names: ReadonlyArray<string>) => `(?:${names.join("|")})/`

/** What files of a room may not import, `depth` folders below `src`. */
const importsOf = (room: Room, depth = 1) => {
  const visible = visibleFrom(room)
  const hidden = rooms.filter((other) => other !== room && !visible.includes(other))
  return [
    ...everywhere,
    neverUp,
    ...(hidden.length === 0
      ? []
      : [
          forbid(
            `^(?:\\.\\./){${depth}}${among(hidden)}`,
            `src/${room} may import only: ${visible.length === 0 ? "nothing" : visible.join(", ")}.`,
          ),
        ]),
    ...(room === "base" ? [] : [onlyDuckdb]),
    ...(tableRooms.includes(room) ? [] : [onlyTables]),
    ...(sqliteRooms.includes(room) ? [] : [onlySqlite]),
    ...(pureRooms.includes(room) ? [forbid(machinery, `src/${room} decides; a service acts.`)] : []),
  ]
}

const importsInSandbox = (room: SandboxRoom) => {
  const below = sandboxRooms.slice(0, sandboxRooms.indexOf(room))
  const above = sandboxRooms.slice(sandboxRooms.indexOf(room) + 1)
  return [
    ...importsOf("sandbox", 2),
    ...(above.length === 0
      ? []
      : [forbid(`^\\.\\./${among(above)}`, `src/sandbox/${room} may import only: ${below.join(", ")}.`)]),
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
    "import/no-cycle": ["error", { ignoreTypes: false }],
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
        "max-lines": ["error", { max: 500 }],
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
    // Whatever stands in no room: loose in src, in a room that is not listed, deeper than rooms go.
    refuse("src/**/*.ts", [forbid("", "This file stands in no room: oxlint.config.ts lists them.")]),
    ...rooms.map((room) => refuse(`src/${room}/*.ts`, importsOf(room))),
    refuse("src/sandbox/*.ts", [
      forbid("", "The embedded service has rooms of its own: no file stands before them."),
    ]),
    ...sandboxRooms.map((room) => refuse(`src/sandbox/${room}/*.ts`, importsInSandbox(room))),
    refuse("src/cli/*.ts", [
      ...importsOf("cli"),
      forbid("^\\./commands/", "Commands use the kit; only Nightjar.ts, which lists them, knows them."),
    ]),
    refuse("src/cli/Nightjar.ts", importsOf("cli")),
    refuse("src/cli/{acquaint,commands}/*.ts", importsOf("cli", 2)),
    refuse("src/landing/Landing.ts", [
      ...importsOf("landing"),
      forbid(machinery, "The port serves simulated nights too: no disk here."),
    ]),
    refuse("src/main.ts", [...everywhere, onlyDuckdb, onlySqlite, onlyTables]),
  ],
}

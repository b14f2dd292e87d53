/**
 * What the commands print, whole: on stdout and stderr, for people and with `--json`, when they work and when they are
 * asked wrongly. Each output is a file in `outputs/`; `npx vitest run test/cli/Outputs.test.ts -u` writes them anew, and
 * the difference is read before it is committed. What depends on the moment or the machine has its kind in its place.
 */
import { mkdirSync, realpathSync } from "node:fs"
import { afterAll, beforeAll, describe, it, vi, type TestContext } from "vitest"
import { Workplace } from "../acceptance/Nightjar.ts"
import type { Ended } from "../harness/ProgramHere.ts"

// Processes on a busy machine take their time; how long is nothing that these checks judge.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const place = new Workplace(false)
afterAll(() => place.remove())

/**
 * Whom each customer's login makes of it: all records, a refusal, one feature too few, documents. Accounts have no
 * table, so that there is something to draft.
 */
const job = `name: small
service: { sandbox: { seed: 3, speed: 2000 } }
polling: { min: 1 second, max: 20 seconds }
retry: { max_attempts: 1 }
engines:
  - reference: sandbox-bank:website
    features: [accounts_read, customer_information_read]
customers:
  - { id: ana, parameters: { username: ok+queue-5+run-30+records-4, password: "env:LOGIN_PASSWORD" } }
  - { id: ben, parameters: { username: end-BLOCKED_USER+queue-5+run-30, password: "env:LOGIN_PASSWORD" } }
  - { id: cleo, parameters: { username: ok+queue-5+run-30+records-4+partial, password: "env:LOGIN_PASSWORD" } }
  - { id: dora, parameters: { username: ok+queue-5+run-30+records-2+attach-1, password: "env:LOGIN_PASSWORD" } }
record_schemas: []
`

const wrongJob = `name: wrong
service: { sandbox: { seed: three } }
engines: [sandbox-bank:website]
custmers: []
`

const told: ReadonlyArray<readonly [kind: string, pattern: RegExp]> = [
  ["<TIME>", /\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?/g],
  ["<DATE>", /\d{4}-\d{2}-\d{2}/g],
  ["<CLOCK>", /(?<![\w.:])\d{2}:\d{2}(?::\d{2})?(?![\w:])/g],
  ["<ID>", /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g],
  ["<HEX>", /(?<![0-9a-f])[0-9a-f]{12,64}(?![0-9a-f])/g],
  ["<DURATION>", /(?<![\w.-])\d+(?:\.\d+)? (?:h(?: \d+ min)?|min(?: \d+ s)?|s|ms)\b/g],
  ["<SIZE>", /(?<![\w.-])\d+(?:\.\d+)? (?:B|bytes|kB|MB|GB)\b/g],
  ["<N>", /(?<="(?:elapsed_ms|facts)": )\d+/g],
]

const settled = (text: string): string =>
  told
    .reduce(
      (all, [kind, pattern]) => all.replaceAll(pattern, kind),
      text.replaceAll(realpathSync(place.folder), "<FOLDER>").replaceAll(place.folder, "<FOLDER>"),
    )
    // How often an execution is seen on its way depends on how busy the machine is.
    .replaceAll(/^<TIME> {2}attempt \d+: ONGOING .*\n/gm, "")
    // It is away for an hour of each day.
    .replaceAll(/^sandbox-window:website .*\n/gm, "")
    .replaceAll(/(?<=segment-\d{6}\.njl at )\d+|\d+(?= facts of the ledger)/g, "<N>")
    .replaceAll(/[ \t]+$/gm, "")

const shown = (args: string, { code, stdout, stderr }: Ended): string =>
  [
    `$ nightjar ${args}`,
    `exit code ${code}`,
    ...(stdout === "" ? [] : ["", "--- stdout", settled(stdout).trimEnd()]),
    ...(stderr === "" ? [] : ["", "--- stderr", settled(stderr).trimEnd()]),
    "",
  ].join("\n")

const wordsOf = (args: string): ReadonlyArray<string> =>
  [...args.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? "")

const compared = async (args: string, { expect }: TestContext): Promise<void> => {
  const name = args.replaceAll(/[^\w=@]+/g, "-").replaceAll(/^-|-$/g, "")
  await expect(shown(args, await place.nightjar(...wordsOf(args)))).toMatchFileSnapshot(`outputs/${name}.txt`)
}

beforeAll(async () => {
  mkdirSync(place.output, { mode: 0o700 })
  place.environment["COLUMNS"] = "80"
  place.write("small.yaml", job)
  place.write("wrong.yaml", wrongJob)
})

/** Commands that a semicolon stands between. */
const eachOf = (commands: string): ReadonlyArray<string> => commands.split(";").map((one) => one.trim())

/** In this order: each finds what those before it left. */
describe("before and during a night", () => {
  it.for(
    eachOf(`
      validate small.yaml; validate wrong.yaml; validate small.yaml --json; plan small.yaml;
      plan small.yaml --json; plan wrong.yaml; query "SELECT 1"; run small.yaml --no-progress;
      run small.yaml --json`),
  )("`nightjar %s` prints what it did", compared)
})

describe.concurrent("after a night", () => {
  it.for(
    eachOf(`
      status; status --json; status --night; status --all;
      status --outcome succeeded --outcome partial --customer cleo;
      status --outcome succeed --engine sandbox-bank:websit --customer emma; runs; runs --json;
      explain ana; explain BLOCKED_USER; explain BLOCKED_USER --json;
      explain CUSTOMER_INTERVENTION_REQUIRED; explain FEATURE_DISABLED;
      explain FEATURE_DISABLED --json; explain RUN_DRAINED; explain job-invalid; explain nobody;
      query "SELECT customer_id, outcome, reason FROM ops.tasks ORDER BY ALL";
      query "SELECT customer_id, outcome, reason FROM ops.tasks ORDER BY ALL" --format json;
      query "SELECT customer_id, outcome, reason FROM ops.tasks ORDER BY ALL" --format csv;
      query "SELECT nothing FROM nowhere"; query @missing; query "SELECT 1 AS one" --json --format csv;
      query --list; tables nothing; tables emails; tables tasks --json; engines list --job small.yaml;
      engines show sandbox-bank:website --job small.yaml;
      engines show no-bank:website --job small.yaml; tokens list --json; schedule small.yaml;
      schedule small.yaml --cron --at 22:30; verify; verify --json; infer; prune small.yaml --dry-run;
      rerun --dry-run; rerun --dry-run --json; accept; credentials list; credentials list --json;
      credentials release nobody; tokens list; hooks list small.yaml; pause; limit max_in_flight=0;
      run; run nowhere.yaml; run small.yaml --jsno; plna; help retentoin`),
  )("`nightjar %s` prints what it did", compared)
})

/** Each has the folder for itself. */
describe("what changes the folder after a night", () => {
  it.for(
    eachOf(`
      repair; repair --json; rebuild --dry-run; rebuild --dry-run --json; rollback; rollback --list;
      rollback --to 7; documents; report --json; backup copy; forget cleo; forget cleo --dry-run;
      forget cleo --yes --json; forget nobody --yes; status --json --night`),
  )("`nightjar %s` prints what it did", compared)

  it("`nightjar explain RECEIPT` shows the removal whose receipt `forget` names", async ({ expect }) => {
    const forgotten = await place.nightjar("forget", "ben", "--yes")
    const [receipt = ""] = /forgotten-[0-9a-f]+/.exec(forgotten.stdout) ?? []
    const told = `${shown("forget ben --yes", forgotten)}\n${shown("explain RECEIPT", await place.nightjar("explain", receipt))}`
    await expect(told).toMatchFileSnapshot("outputs/explain-receipt.txt")
  })
})

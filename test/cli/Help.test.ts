/**
 * The help of every command: all of it fits a terminal of 80 columns, and one page is compared whole.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestConsole } from "effect/testing"
import { Command } from "effect/cli"
import { Presenter } from "../../src/cli/Presenter.ts"
import { nightjar, NightjarFlags } from "../../src/cli/Nightjar.ts"

const widthMax = 80

const run = Command.runWith(nightjar, { version: "0.0.0" })
/** Help asks for none of the services that its command would need. */
const nothing = Context.empty() as Context.Context<Effect.Services<ReturnType<typeof run>>>

const helpOf = (args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    yield* Effect.ignore(run([...args, "--help"])).pipe(Effect.provide(nothing))
    return (yield* TestConsole.logLines).map(String).join("\n")
  }).pipe(
    Effect.provide(
      Layer.mergeAll(NodeServices.layer, TestConsole.layer, NightjarFlags.layer, Presenter.layer),
    ),
  )

const names =
  "demo init validate doctor plan run rerun schedule status runs explain query tables infer verify repair rebuild rollback backup prune sandbox"
const commands = [
  [],
  ...`${names} acquaint credentials tokens hooks engines`.split(" ").map((name) => [name]),
  ...["list", "release"].map((name) => ["credentials", name]),
  ...["list", "exchange", "revoke"].map((name) => ["tokens", name]),
  ...["list", "subscribe", "remove"].map((name) => ["hooks", name]),
  ...["list", "show"].map((name) => ["engines", name]),
]

describe("the help", () => {
  it.effect("of `run` is this", () =>
    Effect.gen(function* () {
      expect(yield* helpOf(["run"])).toBe(`DESCRIPTION
  Runs each job once: plan, execute, land, normalise, publish, delete.
  An unfinished run is resumed.

USAGE
  nightjar run [flags] <JOB...>

ARGUMENTS
  JOB... string    A job file, such as jobs/demo.yaml

FLAGS
  --new                     Start another run even if the last one is unfinished
  --webhooks [HOST:]PORT    Receive the service's events here (0: any free port)
  --json                    Print JSON

GLOBAL FLAGS
  --help, -h             Show this help
  --version, -v          Show the version
  --completions SHELL    Completions for bash, zsh, fish, sh, powershell or pwsh
  --log-level LEVEL      all, trace, debug, info, warn, error, fatal or none
  --output DIR           The output folder (default: NIGHTJAR_OUTPUT, or output)
  --env-file FILE        Variables of the job (default: .env beside the job)
  --no-progress          Show no progress on stderr

EXAMPLES
  # The demo job
  nightjar run jobs/demo.yaml

  # The same, with webhooks instead of frequent polling
  nightjar run jobs/demo.yaml --webhooks 0`)
    }),
  )

  it.effect.each(commands.map((args) => [args.join(" ") || "nightjar", args] as const))(
    "of %s fits 80 columns",
    ([, args]) =>
      Effect.gen(function* () {
        const help = yield* helpOf(args)
        expect(help).toContain("GLOBAL FLAGS")
        expect(help.split("\n").filter((line) => line.length > widthMax)).toEqual([])
      }),
  )
})

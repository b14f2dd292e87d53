/**
 * The help of every command: all of it fits a terminal of 80 columns. `npm run generated` compares every page whole
 * with `schemas/commands.md`; one is compared here, as it is asked for.
 */
import { fileURLToPath } from "node:url"
import { stripVTControlCharacters } from "node:util"
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestConsole } from "effect/testing"
import { NightjarFlags, Presenter, runNightjar } from "../../src/cli/Nightjar.ts"
import { helpPages } from "../project/helpPages.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const widthMax = 80

/** Help asks for none of the services that its command would need. */
const nothing = Context.empty() as Context.Context<Effect.Services<ReturnType<typeof runNightjar>>>

const helpOf = (args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    yield* Effect.ignore(runNightjar([...args, "--help"])).pipe(Effect.provide(nothing))
    return (yield* TestConsole.logLines).map(String).join("\n")
  }).pipe(
    Effect.provide(
      Layer.mergeAll(NodeServices.layer, TestConsole.layer, NightjarFlags.layer, Presenter.layer),
    ),
  )

describe("the help", () => {
  it.effect("of `run` is this", () =>
    Effect.gen(function* () {
      expect(yield* helpOf(["run"])).toBe(`DESCRIPTION
  Runs each job once, or resumes its unfinished run

  The steps of a run: plan, execute, land, normalise, publish, delete.

USAGE
  nightjar run [flags] <JOB...>

ARGUMENTS
  JOB... string    A job file, such as jobs/demo.yaml

FLAGS
  --new                     Start another run even if the last one is unfinished
  --wait DURATION           How long to wait for another process in the folder
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

  it("of every command fits 80 columns", async () => {
    const pages = Object.entries((await helpPages(root)) ?? {})
    expect(pages.length).toBeGreaterThan(40)
    const lines = pages.flatMap(([asked, page]) =>
      stripVTControlCharacters(page)
        .split("\n")
        .map((line) => [asked, line] as const),
    )
    expect(lines.filter(([, line]) => line.length > widthMax)).toEqual([])
  })
})

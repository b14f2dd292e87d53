/**
 * The help of every command: what this program says in it fits a terminal of 80 columns. The flags of the
 * command line library, which stand in a column as wide as its longest one, are the library's.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestConsole } from "effect/testing"
import { Command } from "effect/cli"
import { nightjar } from "../../src/cli/Nightjar.ts"

const widthMax = 80

/** What stands above the flags that all commands share, and what stands below them. */
const ownLines = (help: string): ReadonlyArray<string> =>
  help.replace(/^GLOBAL FLAGS\n(?: .*(?:\n|$))+/m, "").split("\n")

const run = Command.runWith(nightjar, { version: "0.0.0" })
/** Help asks for none of the services that its command would need. */
const nothing = Context.empty() as Context.Context<Effect.Services<ReturnType<typeof run>>>

const helpOf = (args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    yield* Effect.ignore(run([...args, "--help"])).pipe(Effect.provide(nothing))
    return (yield* TestConsole.logLines).map(String).join("\n")
  }).pipe(Effect.provide(Layer.merge(NodeServices.layer, TestConsole.layer)))

const names =
  "demo init validate doctor plan run rerun status runs explain query tables verify repair rebuild rollback backup prune sandbox"
const commands = [
  [],
  ...`${names} acquaint credentials tokens engines`.split(" ").map((name) => [name]),
  ...["list", "release"].map((name) => ["credentials", name]),
  ...["list", "exchange", "revoke"].map((name) => ["tokens", name]),
  ...["list", "show"].map((name) => ["engines", name]),
]

describe("the help", () => {
  it.effect.each(commands.map((args) => [args.join(" ") || "nightjar", args] as const))(
    "of %s fits 80 columns",
    ([, args]) =>
      Effect.gen(function* () {
        const help = yield* helpOf(args)
        expect(help).toContain("GLOBAL FLAGS")
        expect(ownLines(help).filter((line) => line.length > widthMax)).toEqual([])
      }),
  )
})

/**
 * The pages that `--help` and `--version` print, made when the command is built: Effect's command line alone costs more
 * than three times a bare Node, and a text that never changes needs none of it. They are asked of the commands
 * themselves, so that a page says exactly what the program would.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { CliOutput, Command, type HelpDoc } from "effect/cli"

const formatter = CliOutput.defaultFormatter({ colors: true })

interface CommandLine {
  readonly nightjarWith: (isAsked: () => boolean) => Promise<Command.Command<"nightjar", unknown, unknown>>
  readonly layOutHelp: (doc: HelpDoc.HelpDoc) => HelpDoc.HelpDoc
  readonly NightjarFlags: { readonly layer: Layer.Layer<never> }
}

/** Below a page: the commands that it lists. */
const namesBelow = (doc: HelpDoc.HelpDoc): ReadonlyArray<string> =>
  (doc.subcommands ?? []).flatMap(({ commands }) => commands.map(({ name }) => name))

/**
 * Coloured pages by the arguments that ask for them, such as `tokens list --help`; undefined for a checkout without
 * commands.
 */
export const helpPages = async (root: string): Promise<Readonly<Record<string, string>> | undefined> => {
  const roomOf = (name: string) => join(root, "src/cli", name)
  if (!existsSync(roomOf("Nightjar.ts"))) return undefined
  const { layOutHelp, nightjarWith, NightjarFlags } = (await import(
    pathToFileURL(roomOf("Nightjar.ts")).href
  )) as CommandLine
  const { toolVersion } = (await import(pathToFileURL(roomOf("Failures.ts")).href)) as {
    readonly toolVersion: string
  }
  const nightjar = await nightjarWith(() => true)
  const pages: Record<string, string> = {}

  const ask = async (path: ReadonlyArray<string>, flag: "--help" | "--version"): Promise<void> => {
    const args = [...path, flag]
    let below: ReadonlyArray<string> = []
    const keeper = CliOutput.layerPresenter({
      present: (event) =>
        Effect.sync(() => {
          if (event._tag === "Version")
            pages[args.join(" ")] = formatter.formatVersion(event.name, event.version)
          if (event._tag !== "Help") return
          pages[args.join(" ")] = formatter.formatHelpDoc(layOutHelp(event.helpDoc))
          below = namesBelow(event.helpDoc)
        }),
    })
    const services = Layer.mergeAll(keeper, NightjarFlags.layer, NodeServices.layer)
    await Effect.runPromise(
      Effect.provide(Command.runWith(nightjar, { version: toolVersion })(args), services),
    )
    for (const name of below) await ask([...path, name], "--help")
  }

  await ask([], "--version")
  await ask([], "--help")
  return pages
}

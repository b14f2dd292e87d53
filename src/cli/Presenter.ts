/**
 * How wrong usage is reported: one line per mistake, with the nearest known name and where to find help.
 * Help on request goes to stdout.
 */
import { Console, Effect, Option } from "effect"
import { CliOutput } from "effect/cli"
import type { CliError, HelpDoc } from "effect/cli"
import { nearestName } from "../base/Text.ts"
import { told } from "../messages/Catalogue.ts"
import { plain, wrap } from "../report/TextTable.ts"
import { firstCommands } from "./Nightjar.ts"

// How help is laid out: the command line library puts every choice of its own flags into the column of names,
// which makes each page 166 columns wide. Here these flags have a short name for their value and one line of
// choices, so that every page fits a terminal of 80 columns.

/** The name of the value, and what the flag does, by the library's name of the flag. */
const short: Readonly<Record<string, readonly [type: string, description: string]>> = {
  help: ["boolean", "Show this help"],
  version: ["boolean", "Show the version"],
  completions: ["SHELL", "Completions for bash, zsh, fish, sh, powershell or pwsh"],
  "log-level": ["LEVEL", "all, trace, debug, info, warn, error, fatal or none"],
}

const shortened = (flag: HelpDoc.FlagDoc): HelpDoc.FlagDoc => {
  const [type, description] = short[flag.name] ?? []
  return type === undefined || description === undefined
    ? flag
    : { ...flag, type, description: Option.some(description) }
}

const namesWidth = 60
const columnWidth = Math.max(...[...firstCommands].map(({ length }) => length))

/** A line of the list of commands; the columns of all groups are equally wide. */
const listedLine = (name: string, description: string): HelpDoc.SubcommandDoc => ({
  name: name.padEnd(columnWidth),
  description,
  alias: undefined,
  shortDescription: undefined,
})

/** The first screen says of each group what its most used commands do, and what the others are called. */
const layOutGroup = ({ group, commands }: HelpDoc.SubcommandGroupDoc): HelpDoc.SubcommandGroupDoc => {
  const isFirst = ({ name }: HelpDoc.SubcommandDoc) => firstCommands.has(name)
  const [one, ...more] = commands
    .filter(isFirst)
    .map((each) => listedLine(each.name, each.shortDescription ?? each.description))
  const others = commands.filter((each) => !isFirst(each)).map(({ name }) => name)
  const named = wrap(others.join(", "), namesWidth)
    .split("\n")
    .map((names, line) => listedLine(line === 0 ? "also" : "", names))
  return one === undefined ? { group, commands } : { group, commands: [one, ...more, ...named] }
}

/** Only the whole program has groups. */
export const layOutHelp = ({ globalFlags, subcommands, ...doc }: HelpDoc.HelpDoc): HelpDoc.HelpDoc => ({
  ...doc,
  ...(globalFlags && { globalFlags: globalFlags.map(shortened) }),
  ...(subcommands && {
    subcommands: subcommands.map((one) => (one.group === undefined ? one : layOutGroup(one))),
  }),
})

/** The library suggests only what belongs to the command itself. */
const everywhere = ["--output", "--env-file", "--no-progress", "--log-level", "--help", "--version"]

const meant = (suggestions: ReadonlyArray<string>): string =>
  suggestions.length === 0 ? "" : `; did you mean ${suggestions.map((one) => `\`${one}\``).join(" or ")}?`

const flagsNear = ({ option, suggestions }: CliError.UnrecognizedOption): ReadonlyArray<string> => {
  const near = suggestions.length === 0 ? nearestName(option, everywhere) : undefined
  return near === undefined ? suggestions : [near]
}

/** No value is repeated: a mistyped line may contain a secret. */
const tell = (error: CliError.NonShowHelpErrors): string => {
  switch (error._tag) {
    case "UnrecognizedOption":
      return `unknown flag ${plain(error.option)}${meant(flagsNear(error))}`
    case "UnknownSubcommand":
      return `unknown command \`${plain(error.subcommand)}\`${meant(error.suggestions)}`
    case "MissingOption":
      return `--${error.option} is missing`
    case "MissingArgument":
      return `${error.argument} is missing`
    case "UnexpectedArgument":
      return `more arguments than this command accepts (${error.arguments.length} too many)`
    case "InvalidValue":
      return error.kind === "flag"
        ? `--${error.option}: ${expected(error.expected)}`
        : `${error.option}: ${expected(error.expected)}`
    default:
      return error.message
  }
}

/** The library's words for a value, and ours. */
const plainWords = new Map([
  ["a string representing a finite number", "a number"],
  ["an integer", "a whole number"],
  ["integer", "a whole number"],
])

const expected = (text: string): string => {
  const words = text
    .replace(/^Expected:? /, "")
    .replaceAll('"', "")
    .replaceAll(" | ", ", ")
  return `expected ${plainWords.get(words) ?? words}`
}

export const Presenter = {
  layer: CliOutput.layerPresenter({
    present: Effect.fnUntraced(function* (event: CliOutput.Presenter.Event) {
      if (event._tag === "Help")
        return yield* CliOutput.defaultPresenter.present({ ...event, helpDoc: layOutHelp(event.helpDoc) })
      if (event._tag !== "InvalidInvocation") return yield* CliOutput.defaultPresenter.present(event)
      const lines = event.errors.map((error) => `nightjar: ${told("usage-wrong", { mistake: tell(error) })}`)
      yield* Console.error([...new Set(lines), `See \`${event.commandPath.join(" ")} --help\`.`].join("\n"))
    }),
  }),
}

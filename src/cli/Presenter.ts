/**
 * How wrong usage is answered: one line for each mistake with the nearest name there is, and where help is
 * found. Help that was asked for goes to stdout.
 */
import { Console, Effect } from "effect"
import { CliOutput } from "effect/cli"
import type { CliError } from "effect/cli"
import { told } from "../messages/Catalogue.ts"
import { plain } from "../report/TextTable.ts"

const meant = (suggestions: ReadonlyArray<string>): string =>
  suggestions.length === 0 ? "" : `; did you mean ${suggestions.map((one) => `\`${one}\``).join(" or ")}?`

/** Nothing of a value is repeated: a mistyped line may hold a secret. */
const tell = (error: CliError.NonShowHelpErrors): string => {
  switch (error._tag) {
    case "UnrecognizedOption":
      return `unknown flag ${plain(error.option)}${meant(error.suggestions)}`
    case "UnknownSubcommand":
      return `unknown command \`${plain(error.subcommand)}\`${meant(error.suggestions)}`
    case "MissingOption":
      return `--${error.option} is missing`
    case "MissingArgument":
      return `${error.argument} is missing`
    case "UnexpectedArgument":
      return `more arguments than this command takes (${error.arguments.length} too many)`
    case "InvalidValue":
      return error.kind === "flag"
        ? `--${error.option}: ${expected(error.expected)}`
        : `${error.option}: ${expected(error.expected)}`
    default:
      return error.message
  }
}

const expected = (text: string): string =>
  `expected ${text
    .replace(/^Expected:? /, "")
    .replaceAll('"', "")
    .replaceAll(" | ", ", ")}`

export const Presenter = {
  layer: CliOutput.layerPresenter({
    present: Effect.fnUntraced(function* (event: CliOutput.Presenter.Event) {
      if (event._tag !== "InvalidInvocation") return yield* CliOutput.defaultPresenter.present(event)
      const lines = event.errors.map((error) => `nightjar: ${told("usage-wrong", { mistake: tell(error) })}`)
      yield* Console.error([...new Set(lines), `See \`${event.commandPath.join(" ")} --help\`.`].join("\n"))
    }),
  }),
}

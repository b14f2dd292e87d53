/**
 * How help is laid out: the command line library puts every choice of its own flags into the column of names,
 * which makes each page 166 columns wide. Here these flags have a short name for their value and one line of
 * choices, so that every page fits a terminal of 80 columns.
 */
import { Option } from "effect"
import type { HelpDoc } from "effect/cli"

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

export const layOutHelp = ({ globalFlags, ...doc }: HelpDoc.HelpDoc): HelpDoc.HelpDoc =>
  globalFlags === undefined ? doc : { ...doc, globalFlags: globalFlags.map(shortened) }

/**
 * The command `nightjar`: its commands as rows by group, in the order in which a newcomer meets them, and
 * the flags they all share. A command's module, and all that it imports, is loaded only when the command
 * line names it; what the others are called and do is said here. /
 */
import { setFlagsFromString } from "node:v8"
import { Array as Arr, Console, Effect, Option } from "effect"
import { CliConfig, CliOutput, Command, GlobalFlag } from "effect/cli"
import type { CliError, HelpDoc } from "effect/cli"
import { nearestName } from "../base/Text.ts"
import { EnvFileFlag, NoProgressFlag, OutputFlag } from "./CommonFlags.ts"
import { toolVersion } from "./Failures.ts"
import { told } from "../messages/Catalogue.ts"
import { plain, wrap } from "../report/TextTable.ts"

interface Said {
  readonly summary: string
  /** On the first screen of `nightjar --help` with its summary; of the others, that has the names. */
  readonly isFirst?: boolean
  /** It waits for hundreds of executions. */
  readonly isNight?: boolean
}

const row = <const Name extends string, Input, ContextInput, E, R>({
  load,
  ...said
}: Said & { readonly load: () => Promise<Command.Command<Name, Input, ContextInput, E, R>> }) => ({
  ...said,
  load: async () => Command.withShortDescription(await load(), said.summary),
})

const groups = {
  Run: {
    demo: row({
      summary: "Runs the demo job and explains how it ended",
      isNight: true,
      isFirst: true,
      load: async () => (await import("./commands/Run.ts")).demo,
    }),
    init: row({
      summary: "Writes jobs/NAME.yaml, a commented job file to fill in",
      isFirst: true,
      load: async () => (await import("./commands/Init.ts")).init,
    }),
    plan: row({
      summary: "Shows what `run` would start, without starting anything",
      load: async () => (await import("./commands/Plan.ts")).plan,
    }),
    run: row({
      summary: "Runs each job once, or resumes its unfinished run",
      isNight: true,
      isFirst: true,
      load: async () => (await import("./commands/Run.ts")).run,
    }),
    rerun: row({
      summary: "Runs again what did not succeed in a run",
      isNight: true,
      load: async () => (await import("./commands/Run.ts")).rerun,
    }),
    validate: row({
      summary: "Checks job files offline; each error with file:line:column",
      load: async () => (await import("./commands/Validate.ts")).validate,
    }),
    doctor: row({
      summary: "Checks machine, folder, ledger, secrets, alarms and services",
      load: async () => (await import("./commands/Doctor.ts")).doctor,
    }),
    schedule: row({
      summary: "Prints or installs the timer of jobs",
      load: async () => (await import("./commands/Schedule.ts")).schedule,
    }),
    notify: row({
      summary: "Tries the receivers of a job's alarms",
      load: async () => (await import("./commands/Notify.ts")).notify,
    }),
    accept: row({
      summary: "Publishes a run that a gate of its job holds back",
      isNight: true,
      load: async () => (await import("./commands/Accept.ts")).accept,
    }),
    pause: row({
      summary: "Pauses the running night: it starts nothing until `resume`",
      load: async () => (await import("./commands/Steer.ts")).pause,
    }),
    resume: row({
      summary: "Ends the pause of the running night",
      load: async () => (await import("./commands/Steer.ts")).resume,
    }),
    drain: row({
      summary: "Ends the running night once what is running has finished",
      load: async () => (await import("./commands/Steer.ts")).drain,
    }),
    limit: row({
      summary: "Changes how many executions the running night has at once",
      load: async () => (await import("./commands/Steer.ts")).limit,
    }),
  },
  Look: {
    status: row({
      summary: "Lists a run's tasks with outcome and reason",
      isFirst: true,
      load: async () => (await import("./commands/Status.ts")).status,
    }),
    explain: row({
      summary: "Explains any id, reason or message",
      load: async () => (await import("./commands/Explain.ts")).explain,
    }),
    query: row({
      summary: "Runs SQL over the published tables (see `nightjar tables`)",
      isFirst: true,
      load: async () => (await import("./commands/Query.ts")).query,
    }),
    help: row({
      summary: "Shows a page of the documentation, or lists all pages",
      load: async () => (await import("./commands/Help.ts")).help,
    }),
    runs: row({
      summary: "Lists all runs of the output folder, oldest first",
      load: async () => (await import("./commands/Runs.ts")).runs,
    }),
    report: row({
      summary: "Writes a run's HTML report and worklist",
      load: async () => (await import("./commands/Report.ts")).report,
    }),
    tables: row({
      summary: "Describes every published table and view",
      load: async () => (await import("./commands/Tables.ts")).tables,
    }),
    documents: row({
      summary: "Copies documents under names for people",
      load: async () => (await import("./commands/Documents.ts")).documents,
    }),
    pseudonyms: row({
      summary: "Shows which customer each pseudonym stands for",
      load: async () => (await import("./commands/Documents.ts")).pseudonyms,
    }),
  },
  Mend: {
    verify: row({
      summary: "Checks that files, ledger and tables agree; exit code 3 if not",
      isFirst: true,
      load: async () => (await import("./commands/Verify.ts")).verify,
    }),
    repair: row({
      summary: "Rebuilds missing or damaged tables from landed data",
      load: async () => (await import("./commands/Repair.ts")).repair,
    }),
    rebuild: row({
      summary: "Derives all tables again from landed data",
      load: async () => (await import("./commands/Rebuild.ts")).rebuild,
    }),
    rollback: row({
      summary: "Publishes the tables of the previous version again",
      load: async () => (await import("./commands/Rebuild.ts")).rollback,
    }),
  },
  Keep: {
    backup: row({
      summary: "Copies the output folder, and checks the copy",
      isFirst: true,
      load: async () => (await import("./commands/Backup.ts")).backup,
    }),
    prune: row({
      summary: "Removes what is older than `retain` in the job allows",
      load: async () => (await import("./commands/Prune.ts")).prune,
    }),
    compact: row({
      summary: "Combines nightly Parquet files into one per month",
      load: async () => (await import("./commands/Prune.ts")).compact,
    }),
    forget: row({
      summary: "Removes a customer everywhere, with a receipt",
      load: async () => (await import("./commands/Forget.ts")).forget,
    }),
  },
  Service: {
    engines: row({
      summary: "Lists the service's engines, or shows one with its form",
      load: async () => (await import("./commands/Engines.ts")).engines,
    }),
    credentials: row({
      summary: "Lists, releases or settles rejected or unproven logins",
      isFirst: true,
      load: async () => (await import("./commands/Credentials.ts")).credentials,
    }),
    tokens: row({
      summary: "Lists, exchanges or revokes stored tokens",
      load: async () => (await import("./commands/Tokens.ts")).tokens,
    }),
    hooks: row({
      summary: "Lists, makes or removes subscriptions to flow events",
      load: async () => (await import("./commands/Hooks.ts")).hooks,
    }),
    acquaint: row({
      summary: "Tries one customer at a real service and checks each answer",
      isNight: true,
      load: async () => (await import("./commands/Acquaint.ts")).acquaint,
    }),
    infer: row({
      summary: "Drafts a record schema for each family that has none",
      load: async () => (await import("./commands/Infer.ts")).infer,
    }),
    sandbox: row({
      summary: "Serves the embedded service on this machine",
      isNight: true,
      load: async () => (await import("./commands/Sandbox.ts")).sandbox,
    }),
  },
}

type Groups = typeof groups
type RowOf<G> = G extends unknown ? G[keyof G] : never
type LoadedBy<R> = R extends { readonly load: () => Promise<infer C> } ? C : never
/** Any of the commands, with all that it may fail with and needs. */
type Loaded = LoadedBy<RowOf<Groups[keyof Groups]>>

interface Row extends Said {
  readonly load: () => Promise<Loaded>
}

const rowsByGroup = Object.entries<Readonly<Record<string, Row>>>(groups).map(
  ([group, rows]) => [group, Object.entries(rows)] as const,
)

/** The names of the commands that the first screen of the help summarises. */
export const firstCommands: ReadonlySet<string> = new Set(
  rowsByGroup.flatMap(([, rows]) => rows.flatMap(([name, { isFirst }]) => (isFirst === true ? [name] : []))),
)

/**
 * A night waits far more than it computes: a small heap costs it about a tenth more CPU and halves its
 * memory. As they are, V8's rules let the garbage of a thousand waiting executions grow to three times what
 * is alive. A command that only computes would spend a quarter of its time on collecting. /
 */
const keepHeapSmall = (): void => {
  setFlagsFromString("--heap-growing-percent=30")
  setFlagsFromString("--semi-space-growth-factor=1")
}

/** A command that is not run in this process: what the list of commands says of it. */
const described = (name: string, summary: string) => Command.make(name).pipe(Command.withDescription(summary))

/**
 * The command line with the commands for which `isAsked` holds; of the others, what they are called and do.
 */
export const nightjarWith = async (isAsked: (name: string) => boolean) => {
  const entries = rowsByGroup.map(async ([group, rows]) => {
    const all = rows.map(async ([name, { summary, load }]) =>
      isAsked(name) ? await load() : described(name, summary),
    )
    const commands = await Promise.all(all)
    return Arr.isArrayNonEmpty(commands) ? [{ group, commands }] : []
  })
  return Command.make("nightjar").pipe(
    Command.withDescription(
      "Pulls data from a credential-based extraction service into DuckDB and Parquet\n" +
        "  tables every night. `nightjar COMMAND --help` shows what a command does,\n" +
        "  `nightjar help TOPIC` what you need to know about jobs, tables, alarms …",
    ),
    Command.withSubcommands((await Promise.all(entries)).flat()),
    Command.withGlobalFlags([OutputFlag, EnvFileFlag, NoProgressFlag]),
  )
}

/**
 * Runs the command line; a command is loaded if any argument is its name, and all are for their completions.
 */
export const runNightjar = (args: ReadonlyArray<string>) => {
  const isNight = rowsByGroup.some(([, rows]) =>
    rows.some(([name, row]) => row.isNight === true && args.includes(name)),
  )
  if (isNight) keepHeapSmall()
  const isForAll = args.some((arg) => arg.startsWith("--completions"))
  return Effect.promise(() => nightjarWith((name) => isForAll || args.includes(name))).pipe(
    Effect.flatMap((nightjar) => Command.runWith(nightjar, { version: toolVersion })(args)),
  )
}

/** The built-in flags of this command line; no wizard: nobody can answer it at night. */
export const NightjarFlags = {
  layer: CliConfig.layer({
    builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions, GlobalFlag.LogLevel],
  }),
}

// How wrong usage is reported: one line per mistake, with the nearest known name and where to find help.
// Help on request goes to stdout.

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

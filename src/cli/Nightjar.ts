/**
 * The command `nightjar`: its commands as rows by group, in the order in which a newcomer meets them. A
 * command's file, and all that it imports, is loaded only when the command line names it.
 */
import { totalmem } from "node:os"
import { setFlagsFromString } from "node:v8"
import { Array as Arr, Console, Effect, Option, Ref, flow } from "effect"
import { CliConfig, CliOutput, Command, GlobalFlag, type CliError, type HelpDoc } from "effect/cli"
import { nearestName } from "../base/Text.ts"
import { EnvFileFlag, NoProgressFlag, Output, OutputFlag, note } from "./Output.ts"
import { leaving, refuse, toolVersion } from "./Failures.ts"
import { told, toldWhole } from "../messages/Catalogue.ts"
import { plain, wrap } from "../report/TextTable.ts"

/** `first`: summarised on the first screen of the help. `night`: it waits for hundreds of executions. */
type Mark = "first" | "night"

/** The rows of a file's commands; it is loaded once the command line names one of them. */
const of =
  <M>(file: () => Promise<M>) =>
  <const Name extends string, I, C, E, R>(
    pick: (commands: M) => Command.Command<Name, I, C, E, R>,
    summary: string,
    ...marks: ReadonlyArray<Mark>
  ) => ({
    summary,
    marks,
    load: async () => {
      const command = pick(await file())
      return command.pipe(
        Command.withShortDescription(summary),
        Command.withDescription(`${summary}${command.description ?? ""}`),
      )
    },
  })

const files = {
  acquaint: of(() => import("./commands/Acquaint.ts")),
  credentials: of(() => import("./commands/Credentials.ts")),
  doctor: of(() => import("./commands/Doctor.ts")),
  forget: of(() => import("./commands/Forget.ts")),
  help: of(() => import("./commands/Help.ts")),
  keep: of(() => import("./commands/Keep.ts")),
  mend: of(() => import("./commands/Mend.ts")),
  nights: of(() => import("./commands/Run.ts")),
  plan: of(() => import("./commands/Plan.ts")),
  prepare: of(() => import("./commands/Prepare.ts")),
  query: of(() => import("./commands/Query.ts")),
  runs: of(() => import("./commands/Runs.ts")),
  sandbox: of(() => import("./commands/Sandbox.ts")),
  service: of(() => import("./commands/Service.ts")),
  schedule: of(() => import("./commands/Schedule.ts")),
  status: of(() => import("./commands/Status.ts")),
  tables: of(() => import("./commands/Tables.ts")),
  tokens: of(() => import("./commands/Tokens.ts")),
}

const groups = {
  Run: {
    demo: files.nights(($) => $.demo, "Runs the demo job and explains how it ended", "first", "night"),
    init: files.prepare(($) => $.init, "Writes jobs/NAME.yaml, a commented job file to fill in", "first"),
    plan: files.plan(($) => $.plan, "Shows what `run` would start, without starting anything"),
    run: files.nights(($) => $.run, "Runs each job once, or resumes its unfinished run", "first", "night"),
    rerun: files.nights(($) => $.rerun, "Runs again what did not succeed in a run", "night"),
    validate: files.prepare(($) => $.validate, "Checks job files offline; each error with file:line:column"),
    doctor: files.doctor(($) => $.doctor, "Checks machine, folder, ledger, secrets, alarms and services"),
    schedule: files.schedule(($) => $.schedule, "Prints or installs a timer that runs jobs every night"),
    notify: files.prepare(($) => $.notify, "Tests the receivers of a job's alarms"),
    accept: files.nights(($) => $.accept, "Publishes a run that a gate of its job holds back", "night"),
    pause: files.status(($) => $.pause, "Pauses the running night: it starts nothing until `resume`"),
    resume: files.status(($) => $.resume, "Ends the pause of the running night"),
    drain: files.status(($) => $.drain, "Ends the running night once what is running has finished"),
    limit: files.status(($) => $.limit, "Changes how many executions the running night has at once"),
  },
  Look: {
    status: files.status(($) => $.status, "Lists a run's tasks with outcome and reason", "first"),
    explain: files.runs(($) => $.explain, "Explains any id, reason or message"),
    query: files.query(($) => $.query, "Runs SQL over the published tables (see `nightjar tables`)", "first"),
    help: files.help(($) => $.help, "Shows a page of the documentation, or lists all pages"),
    runs: files.runs(($) => $.runs, "Lists all runs of the output folder, oldest first"),
    report: files.runs(($) => $.report, "Writes a run's HTML report and worklist"),
    tables: files.tables(($) => $.tables, "Describes every published table and view"),
    documents: files.keep(($) => $.documents, "Copies each customer's documents, with readable names"),
    pseudonyms: files.keep(($) => $.pseudonyms, "Shows which customer each pseudonym stands for"),
  },
  Mend: {
    verify: files.mend(
      ($) => $.verify,
      "Checks that files, ledger and tables agree; exit code 3 if not",
      "first",
    ),
    repair: files.mend(($) => $.repair, "Rebuilds missing or damaged tables from landed data"),
    rebuild: files.mend(($) => $.rebuild, "Derives all tables again from landed data"),
    rollback: files.mend(($) => $.rollback, "Publishes the tables of an earlier version again"),
  },
  Keep: {
    backup: files.keep(($) => $.backup, "Copies the output folder, and checks the copy", "first"),
    prune: files.keep(($) => $.prune, "Removes what is older than `retain` in the job allows"),
    compact: files.keep(($) => $.compact, "Combines nightly Parquet files into one per month"),
    forget: files.forget(($) => $.forget, "Removes a customer everywhere, with a receipt"),
  },
  Service: {
    engines: files.service(($) => $.engines, "Lists the service's engines, or shows one with its form"),
    credentials: files.credentials(
      ($) => $.credentials,
      "Lists, releases or settles rejected or unproven logins",
      "first",
    ),
    tokens: files.tokens(($) => $.tokens, "Lists, exchanges or revokes stored tokens"),
    hooks: files.service(($) => $.hooks, "Lists, makes or removes subscriptions to flow events"),
    acquaint: files.acquaint(
      ($) => $.acquaint,
      "Tries one customer at a real service and checks each answer",
      "night",
    ),
    infer: files.tables(($) => $.infer, "Drafts a record schema for each family that has none"),
    sandbox: files.sandbox(($) => $.sandbox, "Serves the embedded service on this machine", "night"),
  },
}

type Groups = typeof groups
type RowOf<G> = G extends unknown ? G[keyof G] : never
type LoadedBy<R> = R extends { readonly load: () => Promise<infer C> } ? C : never
type Loaded = LoadedBy<RowOf<Groups[keyof Groups]>>

interface Row {
  readonly summary: string
  readonly marks: ReadonlyArray<Mark>
  readonly load: () => Promise<Loaded>
}

const rowsByGroup = Object.entries<Readonly<Record<string, Row>>>(groups).map(
  ([group, rows]) => [group, Object.entries(rows)] as const,
)

const marked = (mark: Mark): ReadonlySet<string> => {
  const rows = rowsByGroup.flatMap(([, own]) => own)
  return new Set(rows.flatMap(([name, { marks }]) => (marks.includes(mark) ? [name] : [])))
}

const firstCommands = marked("first")
const nightCommands = marked("night")

/** A machine with less memory than this is small: there a night gives up speed for memory. */
const smallMachineBytes = 2 * 1024 ** 3

/**
 * On a small machine or in a small container, V8 keeps the heap small. By its own rules the garbage of a
 * thousand waiting executions grows to three times what is alive: 535 MB instead of 349 MB at the peak, in a
 * tenth less CPU time.
 */
const keepHeapSmall = (): void => {
  if (Math.min(totalmem(), process.constrainedMemory() || Infinity) >= smallMachineBytes) return
  setFlagsFromString("--heap-growing-percent=30")
  setFlagsFromString("--semi-space-growth-factor=1")
}

/** With the commands for which `isAsked` holds; of the others, what they are called and do. */
export const nightjarWith = async (isAsked: (name: string) => boolean) => {
  const entries = rowsByGroup.map(async ([group, rows]) => {
    const all = rows.map(async ([name, { summary, load }]) =>
      isAsked(name) ? await load() : Command.make(name).pipe(Command.withDescription(summary)),
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

/** Half of what was asked for must not look like all. */
const refuseLost = Effect.gen(function* () {
  const { lost } = yield* Output
  const why = yield* Ref.get(lost)
  if (why !== undefined) return yield* refuse("output-lost", { why })
})

/** A night's end does not depend on what it prints. */
const tellLost = Effect.gen(function* () {
  const { lost } = yield* Output
  const why = yield* Ref.get(lost)
  if (why !== undefined) yield* note(`warning: ${toldWhole("summary-lost", { why })}`)
})

/** Of a command that is no run and has no words of its own for it. */
const ofAny = { kept: "What was recorded before is kept.", next: "Then run the same command again." }

/** A command is loaded if any argument is its name, and all are for their completions. */
export const runNightjar = (args: ReadonlyArray<string>) => {
  const isNight = args.some((arg) => nightCommands.has(arg))
  if (isNight) keepHeapSmall()
  const isForAll = args.some((arg) => arg.startsWith("--completions"))
  return Effect.promise(() => nightjarWith((name) => isForAll || args.includes(name))).pipe(
    Effect.flatMap((nightjar) => Command.runWith(nightjar, { version: toolVersion })(args)),
    isNight ? Effect.ensuring(tellLost) : flow(Effect.andThen(refuseLost), leaving(ofAny)),
  )
}

/** The built-in flags of this command line; no wizard: nobody can answer it at night. */
export const NightjarFlags = {
  layer: CliConfig.layer({
    builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions, GlobalFlag.LogLevel],
  }),
}

/** With all choices in the column of names, as the library has it, a page would be 166 columns wide. */
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

const meant = (suggestions: ReadonlyArray<string>): string =>
  suggestions.length === 0 ? "" : `; did you mean ${suggestions.map((one) => `\`${one}\``).join(" or ")}?`

/** The library suggests only what belongs to the command itself. */
const everywhere = ["--output", "--env-file", "--no-progress", "--log-level", "--help", "--version"]

const flagsNear = ({ option, suggestions }: CliError.UnrecognizedOption): ReadonlyArray<string> =>
  suggestions.length > 0 ? suggestions : [nearestName(option, everywhere)].filter((one) => one !== undefined)

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
      return `${error.kind === "flag" ? "--" : ""}${error.option}: ${expected(error.expected)}`
    default:
      return error.message
  }
}

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

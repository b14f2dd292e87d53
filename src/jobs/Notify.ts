/**
 * `notify` in a job file: who is told of a run, and of what. An address may be all that is needed to write to
 * a channel, so it is a reference to a secret; a command stands in the job file, word for word.
 */
import { Predicate, Schema } from "effect"
import type { Context } from "./Problem.ts"
import { notifyEvents } from "./Job.ts"
import type { Job, NotifyEvent, Receiver } from "./Job.ts"
import { parseReference } from "./Reference.ts"
import { reference, ruled, text } from "./Scalars.ts"
import { optional } from "./ShapeKeys.ts"

const mailbox = ruled(
  (value) => /^[^\s@<>(),;:"\\]+@[^\s@<>(),;:"\\]+$/.test(value),
  "an e-mail address alone, such as ops@example.org",
  "[^@]+@[^@]+",
)

/** One entry of `notify`. */
export const NotifyEntry = Schema.Struct({
  on: optional(
    Schema.Array(Schema.Literals(notifyEvents)),
    "failed: the night did not happen or is not complete (exit code 1, 2, 4, 5 or 6, or a gate holds its " +
      "tables back); late: not ended when the night or the deadline is over; new_trouble: trouble of " +
      "customers or tables that the run before did not have, once; recovered: the trouble is over. " +
      "All of them when absent.",
  ),
  url: optional(reference, "An address that gets the notice as JSON: env:NAME, file:PATH or exec:COMMAND."),
  format: optional(
    Schema.Literals(["json", "slack"]),
    "What is sent to `url`: json (the default) has everything, slack is { text }.",
  ),
  ping: optional(
    reference,
    "An address in the manner of Healthchecks: /start at the beginning, /fail after what `failed` and " +
      "`new_trouble` mean, else the address itself.",
  ),
  email: optional(
    reference,
    "A mail server, smtps://USER:PASSWORD@HOST or smtp:// with STARTTLS: env:NAME, file:PATH or " +
      "exec:COMMAND.",
  ),
  from: optional(mailbox, "With `email`: who sends the notice."),
  to: optional(Schema.Array(mailbox), "With `email`: who gets the notice."),
  command: optional(
    Schema.Array(text),
    "A program and its arguments, which gets the notice as JSON on stdin.",
  ),
})

type Entry = typeof NotifyEntry.Type
interface Item {
  readonly index: number
  readonly value: Entry
}

/** More than anybody watches. */
const receiversMax = 10
const recipientsMax = 10

/** The keys as written: an address with a mistake is reported already. */
const keysWritten = ({ document }: Context, index: number): ReadonlySet<string> => {
  const { root } = document
  const list: unknown = Predicate.isObject(root) ? root["notify"] : undefined
  const entry: unknown = Array.isArray(list) ? list[index] : undefined
  return new Set(Predicate.isObject(entry) ? Object.keys(entry) : [])
}

/** The receivers of a job; what is wrong with one goes to the findings. */
export const readReceivers = (
  context: Context,
  items: ReadonlyArray<Item>,
  folder: string,
  times: Pick<Job, "night" | "deadline">,
): ReadonlyArray<Receiver> => {
  const { document, findings } = context
  if (items.length > receiversMax)
    findings.error(document.place(["notify"], "key"), `\`notify\` has more than ${receiversMax} entries`)
  return items.flatMap(({ index, value }) => {
    const { on = notifyEvents, url, ping, email, command, format, from, to } = value
    const complain = (message: string) => findings.error(document.place(["notify", index]), message)
    if (command?.length === 0) complain("`command` names no program")
    const written = keysWritten(context, index)
    if (["url", "ping", "email", "command"].filter((key) => written.has(key)).length !== 1)
      return (complain("an entry has one of `url`, `ping`, `email` and `command`"), [])
    checkEnvelope(value, written, complain)
    if (written.has("format") && !written.has("url")) complain("`format` belongs to `url`")
    if (written.has("ping") && written.has("on"))
      complain("`on` does not belong to `ping`, which is told of every run's beginning and end")
    if (value.on?.includes("late") === true && times.night === undefined && times.deadline === undefined)
      findings.warn(
        document.place(["notify", index, "on"]),
        "`late` is never told: the job has neither `night` nor `deadline`",
      )
    return receiverOf({ on, url, ping, email, command, format, from, to }, index, folder)
  })
}

/** Whom an e-mail is from, and for whom it is. */
const checkEnvelope = (
  { to = [] }: Entry,
  written: ReadonlySet<string>,
  complain: (message: string) => void,
): void => {
  const parts = ["email", "from", "to"].filter((key) => written.has(key)).length
  if (parts !== 0 && parts !== 3) complain("`email`, `from` and `to` belong together")
  else if (written.has("to") && (to.length === 0 || to.length > recipientsMax))
    complain(`\`to\` has 1 to ${recipientsMax} addresses`)
}

const receiverOf = (
  {
    on,
    url,
    ping,
    email,
    command,
    from = "",
    to = [],
    format = "json",
  }: { on: ReadonlyArray<NotifyEvent> } & {
    readonly [Key in Exclude<keyof Entry, "on">]: Entry[Key] | undefined
  },
  index: number,
  folder: string,
): ReadonlyArray<Receiver> => {
  const name = `notify[${index}]`
  if (command !== undefined) return command.length === 0 ? [] : [{ _tag: "Command", name, on, argv: command }]
  const address = parseReference(url ?? ping ?? email ?? "", folder)
  if (address === undefined) return []
  if (email !== undefined) return [{ _tag: "Email", name, on, address, from, to }]
  return [url === undefined ? { _tag: "Ping", name, address } : { _tag: "Url", name, on, address, format }]
}

/** For messages about what a reference leads to, which is known only when it is resolved. */
export const alarmPlacesOf = (
  { document }: Context,
  receivers: ReadonlyArray<Receiver>,
  hasTelemetry: boolean,
): Pick<Job, "alarmPlaces"> => {
  const keys = { Url: "url", Ping: "ping", Email: "email", Command: "command" } as const
  const ofReceivers = receivers.map(
    ({ _tag, name }) =>
      [name, document.place(["notify", Number(name.replace(/\D/g, "")), keys[_tag]])] as const,
  )
  const ofTelemetry = (["otlp", "headers"] as const).map(
    (key) => [`telemetry.${key}`, document.place(["telemetry", key])] as const,
  )
  const places = [...ofReceivers, ...(hasTelemetry ? ofTelemetry : [])]
  return places.length === 0 ? {} : { alarmPlaces: new Map(places) }
}

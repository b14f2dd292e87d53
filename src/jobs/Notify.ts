/**
 * Who is told of a run (`notify` in a job file), and where its logs, metrics and traces go (`telemetry`):
 * what a single setting cannot say about the others beside it. Without `telemetry` nothing is sent, whatever
 * the environment says.
 */
import { Predicate } from "effect"
import type { Place } from "../base/DurableFile.ts"
import { given } from "../base/Schemas.ts"
import type { Item } from "./Assignments.ts"
import type { Job, Receiver, Telemetry } from "./Job.ts"
import type { Context } from "./Problem.ts"
import { beside, parseReference } from "./Scalars.ts"
import { notifyEvents, type Settings } from "./Settings.ts"

type Entry = Settings["notify"][number]

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

export const readReceivers = (
  context: Context,
  items: ReadonlyArray<Item<Entry>>,
  folder: string,
  times: Pick<Job, "night" | "deadline">,
  places: Map<string, Place>,
): ReadonlyArray<Receiver> => {
  const { document, findings } = context
  if (items.length > receiversMax)
    findings.error(document.place(["notify"], "key"), `\`notify\` has more than ${receiversMax} entries`)
  return items.flatMap(({ index, value }) => {
    const complain = (message: string) => findings.error(document.place(["notify", index]), message)
    if (value.command?.length === 0) complain("`command` names no program")
    const written = keysWritten(context, index)
    const [key, ...others] = ["url", "ping", "email", "command"].filter((one) => written.has(one))
    if (key === undefined || others.length > 0)
      return (complain("an entry needs exactly one of `url`, `ping`, `email` and `command`"), [])
    checkEnvelope(value, written, complain)
    if (written.has("format") && !written.has("url")) complain("`format` belongs to `url`")
    if (written.has("ping") && written.has("on"))
      complain("`ping` has no `on`: it is sent at the beginning and the end of every run")
    if (value.on?.includes("late") === true && times.night === undefined && times.deadline === undefined)
      findings.warn(
        document.place(["notify", index, "on"]),
        "`late` is never sent: the job has neither `night` nor `deadline`",
      )
    const name = `notify[${index}]`
    places.set(name, document.place(["notify", index, key]))
    return receiverOf(value, name, folder)
  })
}

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

const receiverOf = (written: Entry, name: string, folder: string): ReadonlyArray<Receiver> => {
  const { on = notifyEvents, url, ping, email, command, from = "", to = [], format = "json" } = written
  if (command !== undefined) return command.length === 0 ? [] : [{ _tag: "Command", name, on, argv: command }]
  const address = parseReference(url ?? ping ?? email ?? "", folder)
  if (address === undefined) return []
  if (email !== undefined) return [{ _tag: "Email", name, on, address, from, to }]
  return [url === undefined ? { _tag: "Ping", name, address } : { _tag: "Url", name, on, address, format }]
}

/** Paths and references are relative to the folder; `places` are for messages about what they lead to. */
export const readTelemetry = (
  { document }: Context,
  { otlp, headers, prometheus, customer_ids }: Exclude<Settings["telemetry"], undefined>,
  folder: string,
  places: Map<string, Place>,
): Telemetry => {
  for (const key of ["otlp", "headers"]) places.set(`telemetry.${key}`, document.place(["telemetry", key]))
  return given({
    otlp: otlp && (parseReference(otlp, folder) ?? otlp),
    headers: headers === undefined ? undefined : parseReference(headers, folder),
    prometheus: prometheus && beside(folder, prometheus),
    customer_ids,
  })
}

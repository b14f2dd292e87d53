/**
 * The catalogue of every error, warning and finding, by its id. A message is built from its id and its
 * values, so one without an entry, or without one of its values, does not compile. `schemas/messages.md`
 * and `nightjar explain ID` are made from it.
 */
import { commandMessages } from "./CommandMessages.ts"
import { findingMessages } from "./FindingMessages.ts"
import type { Message } from "./Message.ts"
import { nightMessages } from "./NightMessages.ts"

export const catalogue = { ...commandMessages, ...nightMessages, ...findingMessages } as const

export type MessageId = keyof typeof catalogue

type Names<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Names<Rest>
  : never
type NamesOf<Id extends MessageId> = Names<(typeof catalogue)[Id]["happened"]>

/** The values of a message, or nothing if it has none. */
export type ValuesOf<Id extends MessageId> = [NamesOf<Id>] extends [never]
  ? []
  : [values: { readonly [Name in NamesOf<Id>]: string | number }]

/** The first line of a value: a cause may be a page long. */
const firstLine = (value: string | number | undefined): string => String(value ?? "").split("\n", 1)[0] ?? ""

/** What happened, as one clause with its values. */
export const happened = <Id extends MessageId>(id: Id, ...[values]: ValuesOf<Id>): string => {
  const given: Readonly<Record<string, string | number>> = values ?? {}
  return catalogue[id].happened.replaceAll(/\{(\w+)\}/g, (_, name: string) => firstLine(given[name]))
}

/** The same followed by its id, for `nightjar explain`. */
export const told = <Id extends MessageId>(id: Id, ...values: ValuesOf<Id>): string =>
  withId(id, happened(id, ...values))

export const withId = (id: MessageId, text: string): string => `${text} [${id}]`

/** All three parts on one line, for a process that is about to end. */
export const toldWhole = <Id extends MessageId>(id: Id, ...values: ValuesOf<Id>): string =>
  withId(id, `${happened(id, ...values)}. ${afterwards(id)}`)

/** What was kept and what to do next, as one line. */
export const afterwards = (id: MessageId): string => `${catalogue[id].kept} ${catalogue[id].next}`

export const isMessageId = (id: string): id is MessageId => Object.hasOwn(catalogue, id)

export const messageOf = (id: MessageId): Message => catalogue[id]

/** What was kept, for who looks the message up, whatever was stopped. */
export const keptOf = ({ kept, first }: Message): string =>
  first === undefined ? kept : `Of a run: ${kept} Any other command says itself what it leaves.`

/** One entry in full, one line per part. */
export const entryLines = (id: MessageId): ReadonlyArray<string> => {
  const { kind, exit_code, happened: what, next } = messageOf(id)
  return [
    `${id}: ${kind}${exit_code === undefined ? "" : `, exit code ${exit_code}`}`,
    `What happened: ${what}`,
    `What was kept: ${keptOf(messageOf(id))}`,
    `What to do next: ${next}`,
  ]
}

// A finding with its place: what `verify` and `repair` list one by one, for people with its id in brackets
// and for programs as JSON.

export interface Problem {
  readonly id: MessageId
  readonly problem: string
  /** A path below the output folder, a table, or an id. */
  readonly where: string
  readonly next: string
}

export const problemOf = <Id extends MessageId>(where: string, id: Id, ...values: ValuesOf<Id>): Problem => ({
  id,
  problem: happened(id, ...values),
  where,
  next: messageOf(id).next,
})

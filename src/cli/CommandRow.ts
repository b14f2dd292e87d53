/**
 * A command as a row: its flags, what it needs, what it finds out, how people read that, and its exit code.
 * `--json` prints the same value.
 */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { Output, jsonFlag, note, outputFolder, say, sayJson } from "./Output.ts"
import { endWith, interruptedText, leaving, type Refused } from "./Failures.ts"
import { requireLedger } from "./OutputFolder.ts"
import { exitCodes } from "../messages/ExitCodes.ts"
import type { Left } from "../messages/Message.ts"
import type { Style } from "../report/RenderSummary.ts"
import { wrap } from "../report/TextTable.ts"

type Flags = Command.Command.Config
/** What was given with these flags. */
export type Asked<F extends Flags> = Command.Command.Config.InferValue<F>
/** What an effect yields and ends with, or a generator of effects. */
interface Steps<A, Y> {
  readonly [Symbol.iterator]: () => Iterator<Y, A, unknown>
}
type AnyEffect = Effect.Effect<unknown, unknown, unknown>
type Told<E, R> = string | ReadonlyArray<string> | Effect.Effect<void, E, R>

export interface Help {
  /** Paragraphs after the summary, which the list of commands has. */
  readonly more?: string
  /** What each of these command lines is for. */
  readonly examples?: Readonly<Record<string, string>>
}

export interface Row<F extends Flags, A, Y extends AnyEffect, E1, R1> extends Help {
  readonly flags: F
  /** Exit code 2 if nothing ever ran in the folder. */
  readonly needs?: "ledger"
  /** Of a command that changes something: what it leaves when it is stopped, and what to do then. */
  readonly left?: Left
  readonly run: (asked: Asked<F>, output: string, isJson: boolean) => Steps<A, Y>
  /** Without it, programs get the value as it is. */
  readonly json?: (found: A, asked: Asked<F>) => unknown
  readonly text: (found: A, out: Style, asked: Asked<F>) => Told<E1, R1>
  /** Without it, the exit code is 0. */
  readonly exit?: (found: A, asked: Asked<F>) => number | Refused
}

const helpWidth = 80

export const filled = (text: string): string =>
  text
    .trim()
    .split(/\n\s*\n/)
    .map((paragraph) => wrap(paragraph.replaceAll(/\s+/g, " ").trim(), helpWidth, "  "))
    .join("\n\n")

/** Adds what `--help` says; a summary is only given to what the list of commands does not have. */
export const helped =
  ({ more, examples = {} }: Help, summary = "") =>
  <const Name extends string, I, C, E, R>(command: Command.Command<Name, I, C, E, R>) =>
    command.pipe(
      Command.withDescription([summary, ...(more === undefined ? [] : [filled(more)])].join("\n\n")),
      Command.withShortDescription(summary),
      Command.withExamples(
        Object.entries(examples).map(([line, description]) => ({ command: line, description })),
      ),
    )

/** Says what the command leaves if the machine, a defect or a signal stops it. */
const tellingLeft =
  (left: Left | undefined) =>
  <A, E, R>(work: Effect.Effect<A, E, R>) =>
    left === undefined
      ? work
      : work.pipe(
          leaving(left),
          Effect.onInterrupt(() => note(interruptedText(left))),
        )

/** 3 if a person has to act. */
export const actUnless = (isFine: boolean): number => (isFine ? exitCodes.ok : exitCodes.peopleMustAct)

export const command = <
  const Name extends string,
  const F extends Flags,
  A,
  Y extends AnyEffect,
  E1 = never,
  R1 = never,
>(
  name: Name,
  row: Row<F, A, Y, E1, R1>,
  summary?: string,
) =>
  Command.make(
    name,
    { asked: row.flags, json: jsonFlag },
    Effect.fn(`${name}.handle`)(function* ({ asked, json }) {
      const output = yield* outputFolder
      if (row.needs === "ledger") yield* requireLedger(output)
      const found = yield* row.run(asked, output, json)
      if (json) yield* sayJson(row.json === undefined ? found : row.json(found, asked))
      else {
        const told = row.text(found, (yield* Output).out, asked)
        if (Effect.isEffect(told)) yield* told
        else for (const text of typeof told === "string" ? [told] : told) yield* say(text)
      }
      const ended = row.exit?.(found, asked) ?? exitCodes.ok
      yield* typeof ended === "number" ? endWith(ended) : ended
    }, tellingLeft(row.left)),
  ).pipe(helped(row, summary))

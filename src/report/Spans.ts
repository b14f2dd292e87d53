/**
 * Spans over Effect's tracer, begun and ended by facts: nothing else of the program is traced, so nothing
 * leaves that is not named here. How many were ended is counted, so that missing ones can be told.
 */
import { Context, Exit, Option, Tracer } from "effect"

export type SpanValues = Readonly<Record<string, string | number | undefined>>

export interface SpanStart {
  readonly name: string
  readonly kind: "internal" | "client"
  readonly parent: Tracer.AnySpan | undefined
  /** Nanoseconds since the epoch. */
  readonly at: bigint
  readonly values: SpanValues
}

/** Most values are of a handful of keys, and there is one of these calls for each request. */
const setOn = (span: Tracer.Span, values: SpanValues): void => {
  for (const key in values) {
    const value = values[key]
    if (value !== undefined) span.attribute(key, value)
  }
}

const endOf = (span: Tracer.Span, at: bigint, error: string | undefined): void => {
  if (error !== undefined) span.attribute("error.type", error)
  span.end(at, error === undefined ? Exit.void : Exit.fail({ name: error, message: error }))
}

/** A span that is over keeps only its ids: later requests may still belong to it. */
export class OpenSpan {
  readonly ids: Tracer.ExternalSpan
  #span: Tracer.Span | undefined
  readonly #onEnd: () => void

  constructor(span: Tracer.Span, onEnd: () => void) {
    this.#span = span
    this.#onEnd = onEnd
    this.ids = Tracer.externalSpan({ spanId: span.spanId, traceId: span.traceId })
  }

  set(values: SpanValues): void {
    if (this.#span !== undefined) setOn(this.#span, values)
  }

  /** Something that happened meanwhile; a span holds a limited number of them. */
  note(name: string, at: bigint, values: Readonly<Record<string, string>>): void {
    this.#span?.event(name, at, values)
  }

  /** With an error's type, as the conventions have it, the span has failed. */
  end(at: bigint, error?: string): void {
    const span = this.#span
    if (span === undefined) return
    this.#span = undefined
    this.#onEnd()
    endOf(span, at, error)
  }
}

export class Spans {
  readonly #tracer: Tracer.Tracer
  ended = 0

  constructor(tracer: Tracer.Tracer) {
    this.#tracer = tracer
  }

  begin(start: SpanStart): OpenSpan {
    return new OpenSpan(this.#make(start), this.#count)
  }

  /** A span that is told when it is over, with nothing below it. */
  tell(start: SpanStart, endedAt: bigint, error: string | undefined): void {
    const span = this.#make(start)
    this.#count()
    endOf(span, endedAt, error)
  }

  readonly #count = (): void => {
    this.ended += 1
  }

  #make({ name, kind, parent, at, values }: SpanStart): Tracer.Span {
    const span = this.#tracer.span({
      name,
      kind,
      parent: Option.fromUndefinedOr(parent),
      annotations: Context.empty(),
      links: [],
      startTime: at,
      root: parent === undefined,
      sampled: true,
    })
    setOn(span, values)
    return span
  }
}

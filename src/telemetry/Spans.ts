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
    for (const [key, value] of Object.entries(values))
      if (value !== undefined) this.#span?.attribute(key, value)
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
    if (error !== undefined) span.attribute("error.type", error)
    this.#onEnd()
    span.end(at, error === undefined ? Exit.void : Exit.fail({ name: error, message: error }))
  }
}

export class Spans {
  readonly #tracer: Tracer.Tracer
  ended = 0

  constructor(tracer: Tracer.Tracer) {
    this.#tracer = tracer
  }

  begin({ name, kind, parent, at, values }: SpanStart): OpenSpan {
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
    const open = new OpenSpan(span, () => {
      this.ended += 1
    })
    open.set(values)
    return open
  }
}

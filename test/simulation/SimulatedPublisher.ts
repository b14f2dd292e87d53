/**
 * The in-memory publisher with a history: what each version held, and when it became visible in true time, so that
 * an observer can compare every deletion with what had been published by then.
 */
import { Context, Effect, Layer } from "effect"
import { Publisher } from "../../src/tables/Publisher.ts"
import { PublisherMemory } from "./PublisherMemory.ts"
import type { PublishedBody } from "./PublisherMemory.ts"
import type { RecordFamily } from "../../src/records/RecordSchema.ts"

export interface PublishedVersion {
  readonly run_id: string
  readonly at: number
  /** Executions with a receipt. */
  readonly executions: ReadonlySet<string>
  readonly bodies: ReadonlyArray<PublishedBody>
}

export interface PublishedHistory {
  readonly store: ReturnType<typeof PublisherMemory.makeStore>
  readonly versions: Array<PublishedVersion>
}

const remembering = (history: PublishedHistory, now: () => number, place: (rows: number) => number) =>
  Layer.flatMap((context: Context.Context<Publisher>) => {
    const publisher = Context.get(context, Publisher)
    return Layer.succeed(
      Publisher,
      Publisher.of({
        ...publisher,
        publish: (run_id) =>
          Effect.tap(publisher.publish(run_id), ({ receipts }) =>
            Effect.sync(() => {
              const bodies = history.store.runs.get(run_id)?.bodies ?? []
              history.versions.push({
                run_id,
                at: now(),
                executions: new Set(receipts.map(({ execution_id }) => execution_id)),
                bodies: bodies.map((body) => ({ ...body, placed: place(body.placed) })),
              })
            }),
          ),
      }),
    )
  })

export const SimulatedPublisher = {
  makeHistory: (): PublishedHistory => ({ store: PublisherMemory.makeStore(), versions: [] }),
  layer: (
    history: PublishedHistory,
    families: ReadonlyArray<RecordFamily>,
    now: () => number,
    place: (rows: number) => number = (rows) => rows,
  ) => PublisherMemory.layer({ store: history.store, families }).pipe(remembering(history, now, place)),
}

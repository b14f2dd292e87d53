/**
 * Where a record goes, by its product and `sub_family`: the builders of its family's tables and the checks
 * of its schema; and which of its fields are times of fetching. A record without a family has no route.
 */
import type { TableBuilder } from "./Columns.ts"
import { compileFamily } from "./CompileFamily.ts"
import type { FetchedOf } from "./RecordIdentity.ts"
import { defaultFetched } from "./RecordSchema.ts"
import type { RecordFamily } from "./RecordSchema.ts"

interface Route {
  readonly table: string
  readonly fetched: ReadonlyArray<string>
  readonly compiled: ReturnType<typeof compileFamily>
  readonly own: TableBuilder
  readonly children: ReadonlyArray<TableBuilder>
}

const noFields: ReadonlyArray<string> = []

export class Routes {
  readonly #routes = new Map<string, Map<string, Route>>()

  constructor(families: ReadonlyArray<RecordFamily>, builder: (table: string) => TableBuilder) {
    for (const family of families) {
      const route: Route = {
        table: family.table,
        fetched: family.fetched,
        compiled: compileFamily(family),
        own: builder(family.table),
        children: family.children.map(({ table }) => builder(table)),
      }
      const bySubFamily = this.#routes.get(family.product) ?? new Map<string, Route>()
      for (const subFamily of family.subFamilies) bySubFamily.set(subFamily, route)
      this.#routes.set(family.product, bySubFamily)
    }
  }

  find(product: string, sub_family: string): Route | undefined {
    return this.#routes.get(product)?.get(sub_family)
  }

  /** A record, or half of one, has times of fetching; other objects have none. */
  readonly fetchedOf: FetchedOf = ({ product, sub_family }) => {
    if (product === undefined && sub_family === undefined) return noFields
    if (typeof product !== "string" || typeof sub_family !== "string") return defaultFetched
    return this.find(product, sub_family)?.fetched ?? defaultFetched
  }
}

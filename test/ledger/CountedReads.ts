/** A ledger that tells how many of its facts are read. */
import type { DatabaseSync } from "node:sqlite"

/** A database that notes how many facts of a run each query brought. */
export const counting = (database: DatabaseSync, read: Array<number>): DatabaseSync =>
  new Proxy(database, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target)
      if (name !== "prepare") return typeof value === "function" ? value.bind(target) : value
      return (sql: string) => {
        const statement = target.prepare(sql)
        if (!sql.includes("WHERE run_id = ? AND seq > ?")) return statement
        return {
          iterate: function* (...given: Parameters<typeof statement.iterate>) {
            const rows = [...statement.iterate(...given)]
            read.push(rows.length)
            yield* rows
          },
        }
      }
    },
  })

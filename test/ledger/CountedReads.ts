/** Databases that answer some statements in another way, or whose file was changed since. */
import { DatabaseSync, type StatementSync } from "node:sqlite"

/** The database with its own answer to the statements that are meant. */
export const preparing = (
  database: DatabaseSync,
  isMeant: (sql: string) => boolean,
  instead: (statement: StatementSync, sql: string) => object,
): DatabaseSync =>
  new Proxy(database, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target)
      if (name !== "prepare") return typeof value === "function" ? value.bind(target) : value
      return (sql: string) => {
        const statement = target.prepare(sql)
        return isMeant(sql) ? instead(statement, sql) : statement
      }
    },
  })

/** A database that notes how many facts of a run each query brought. */
export const counting = (database: DatabaseSync, read: Array<number>): DatabaseSync =>
  preparing(
    database,
    (sql) => sql.includes("WHERE run_id = ? AND seq > ?"),
    (statement) => ({
      iterate: function* (...given: Parameters<typeof statement.iterate>) {
        const rows = [...statement.iterate(...given)]
        read.push(rows.length)
        yield* rows
      },
    }),
  )

/** Changes a file behind the back of whoever wrote it. */
export const changeFile = (path: string, ...statements: ReadonlyArray<string>): void => {
  const database = new DatabaseSync(path)
  for (const sql of statements) database.exec(sql)
  database.close()
}

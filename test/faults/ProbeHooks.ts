/**
 * Puts a probe in front of every function of the rooms that handle what the service answers, as their modules
 * are loaded: declarations, generators inside `Effect.fn`, methods. The list is the code itself, so that a
 * function written tomorrow is probed tomorrow. Preloaded with `--import`; without a listener probes do nothing.
 */
import { registerHooks } from "node:module"
import { basename, dirname } from "node:path"
import { fileURLToPath } from "node:url"
import { nodeIn, nodesIn, parseSource, type Node } from "../mutants/Syntax.ts"

const rooms = ["client", "service", "landing", "records", "tokens", "task", "tables"]

/** Modules whose failure is the night's, by what they are for. */
const nightsOwn: Readonly<Record<string, string>> = {
  "landing/LandingFiles.ts": "a body or document that cannot be written ends the night",
  "landing/Segments.ts":
    "a body that cannot be written ends the night; one that cannot be read back is damage",
  "tables/RunRows.ts": "rows of the ledger, not of an answer",
  "tables/RunPicture.ts": "a fact without its body is damage, and is never published over",
  "tables/LeftOut.ts": "the net itself",
  "task/SettleUnusable.ts": "the net itself",
  "task/Quarantine.ts": "the net itself",
  "task/Night.ts": "the books of the night",
  "task/Progress.ts": "told to whoever watches",
}

/** Single functions of the same kind. */
const nightsOwnFunctions: Readonly<Record<string, string>> = {
  "service/FlowResults.ts sourceNameOf": "reads what is known of a body, not the body",
  "task/ExecuteRun.ts enlist": "opens a task's book",
  "task/DeleteExecutions.ts mayDelete": "reads the ledger",
  "tables/RunTables.ts RunTables.add": "fills a table, with rows of the ledger too",
  "records/Columns.ts TableBuilder.append": "fills a table, with rows of the ledger too",
  "records/Columns.ts TableBuilder.appendAfter": "fills a table, with rows of the ledger too",
  "records/Columns.ts TableBuilder.appendRow": "fills a table, with rows of the ledger too",
}

const nameOf = (node: Node, field: string): string => String(nodeIn(node, field)?.["name"] ?? "?")

interface Insertion {
  readonly at: number
  readonly text: string
}

/** A probe in one function: in front of its body, or around an arrow, which has no `arguments`. */
const probe = (node: Node | undefined, id: string): ReadonlyArray<Insertion> => {
  if (node === undefined || nightsOwnFunctions[id] !== undefined) return []
  if (node.type === "ArrowFunctionExpression")
    return [
      { at: node.start, text: `globalThis.__probed(${JSON.stringify(id)}, (` },
      { at: node.end, text: "))" },
    ]
  if (node.type === "FunctionExpression" || node.type === "FunctionDeclaration") {
    const body = nodeIn(node, "body")
    return body === undefined
      ? []
      : [{ at: body.start + 1, text: ` globalThis.__probe(${JSON.stringify(id)}, arguments); ` }]
  }
  // `Effect.fn("name")(function* …)` and the like: the function is an argument.
  if (node.type === "CallExpression")
    return [
      ...probe(nodeIn(node, "callee"), id),
      ...nodesIn(node, "arguments")
        .filter(({ type }) => type === "FunctionExpression")
        .flatMap((argument) => probe(argument, id)),
    ]
  return []
}

const insertionsOf = (statement: Node, file: string): ReadonlyArray<Insertion> => {
  const declared = statement.type === "ExportNamedDeclaration" ? nodeIn(statement, "declaration") : statement
  if (declared?.type === "VariableDeclaration")
    return nodesIn(declared, "declarations").flatMap((each) =>
      probe(nodeIn(each, "init"), `${file} ${nameOf(each, "id")}`),
    )
  if (declared?.type === "FunctionDeclaration") return probe(declared, `${file} ${nameOf(declared, "id")}`)
  if (declared?.type !== "ClassDeclaration") return []
  const body = nodeIn(declared, "body")
  return (body === undefined ? [] : nodesIn(body, "body"))
    .filter(({ type, kind }) => type === "MethodDefinition" && kind !== "constructor")
    .flatMap((method) =>
      probe(nodeIn(method, "value"), `${file} ${nameOf(declared, "id")}.${nameOf(method, "key")}`),
    )
}

const withProbes = (source: string, file: string): string => {
  const insertions = nodesIn(parseSource(source), "body").flatMap((statement) =>
    insertionsOf(statement, file),
  )
  return insertions
    .toSorted((one, other) => other.at - one.at)
    .reduce((text, { at, text: added }) => text.slice(0, at) + added + text.slice(at), source)
}

const listener: { onCall: ((id: string, args: ArrayLike<unknown>) => void) | undefined } = {
  onCall: undefined,
}
const callProbe = (id: string, args: ArrayLike<unknown>) => listener.onCall?.(id, args)
Object.assign(globalThis, {
  __probes: listener,
  __probe: callProbe,
  __probed:
    <A extends ReadonlyArray<unknown>, B>(id: string, inner: (...args: A) => B) =>
    (...args: A): B => {
      callProbe(id, args)
      return inner(...args)
    },
})

const root = fileURLToPath(new URL("../../src/", import.meta.url))

registerHooks({
  load: (url, context, next) => {
    const loaded = next(url, context)
    if (!url.startsWith("file:")) return loaded
    const path = fileURLToPath(url)
    const room = basename(dirname(path))
    const file = `${room}/${basename(path)}`
    const isProbed = path.startsWith(root) && rooms.includes(room) && nightsOwn[file] === undefined
    if (!isProbed || loaded.source === undefined || loaded.source === null) return loaded
    const source =
      typeof loaded.source === "string" ? loaded.source : Buffer.from(loaded.source as Uint8Array)
    return { ...loaded, source: withProbes(source.toString(), file) }
  },
})

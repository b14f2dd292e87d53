/**
 * Plants a bug in processes that tests start: preloaded through NODE_OPTIONS, it changes the sources that the
 * environment names while Node loads them, or takes them from the folder that it names. Without those variables it
 * does nothing; no file is ever written.
 */
import { existsSync, readFileSync } from "node:fs"
import { registerHooks } from "node:module"
import { join } from "node:path"
import { plantAll, plantedVariable, sourcesVariable, type Change } from "./PlantText.ts"

const planted = process.env[plantedVariable]
const sources = process.env[sourcesVariable]
const root = new URL("../../", import.meta.url).href

if (planted !== undefined && planted !== "") {
  const changes: ReadonlyArray<Change> = JSON.parse(planted)
  registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context)
      const file = url.startsWith(root) ? url.slice(root.length) : ""
      if (!changes.some((change) => change.in === file)) return loaded
      const source = plantAll(String(loaded.source), file, changes)
      if (source === undefined) throw new Error(`no bug can be planted in ${file}`)
      return { ...loaded, source }
    },
  })
}

if (sources !== undefined && sources !== "") {
  registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context)
      const path = url.startsWith(root) ? join(sources, url.slice(root.length)) : ""
      return path !== "" && existsSync(path) ? { ...loaded, source: readFileSync(path, "utf8") } : loaded
    },
  })
}

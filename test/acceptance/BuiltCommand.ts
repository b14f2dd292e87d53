/**
 * The command as `npm ci` leaves it, built from the sources as they are: starting it costs a fifth of what the sources
 * cost, and acceptance starts it often. One build serves every test file, and every run until a source changes.
 */
import { createHash } from "node:crypto"
import {
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
} from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { plantedVariable, sourcesVariable } from "../conformance/PlantText.ts"
import { bundle } from "../project/bundle.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const cache = join(root, "node_modules/.cache/nightjar-acceptance")
const staleMs = 3_600_000

const sourceHash = (): string => {
  const hash = createHash("sha256")
  const sources = globSync(["src/**/*.ts", "test/project/*.{ts,js}"], { cwd: root }).toSorted()
  for (const path of ["package.json", ...sources]) hash.update(path).update(readFileSync(join(root, path)))
  return hash.digest("hex").slice(0, 20)
}

const removeStale = (): void => {
  const newest = statSync(cache).mtimeMs
  for (const name of globSync("*", { cwd: cache }))
    // Another process may have put its draft in place in the meantime.
    if (newest - (statSync(join(cache, name), { throwIfNoEntry: false })?.mtimeMs ?? newest) > staleMs)
      rmSync(join(cache, name), { recursive: true, force: true })
}

/** A folder like a checkout, in which only `dist` is of its own. */
const build = async (): Promise<string> => {
  const home = join(cache, sourceHash())
  const command = join(home, "dist/nightjar.js")
  if (existsSync(command)) {
    // In use again, so not stale: another checkout that shares this cache must not remove it under a long run.
    utimesSync(home, new Date(), new Date())
    return command
  }
  const draft = `${home}.${process.pid}-${Math.round(performance.now() * 1_000)}`
  mkdirSync(draft, { recursive: true })
  for (const name of ["package.json", "schemas", "jobs", "src"])
    symlinkSync(join(root, name), join(draft, name))
  await bundle(draft)
  // Whoever comes first is served to all.
  if (existsSync(home)) rmSync(draft, { recursive: true })
  else renameSync(draft, home)
  removeStale()
  return command
}

export const command = await build()

/** The sources themselves where the environment plants a bug in them, which no build would show. */
export const program = (): string =>
  [plantedVariable, sourcesVariable].some((name) => (process.env[name] ?? "") !== "")
    ? join(root, "src/main.ts")
    : command

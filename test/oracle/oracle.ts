/**
 * `npm run oracle`: 200 seeds of whole nights and what each left, compared with the hashes in `oracle.txt`, on two
 * processors. Names what differs, and exits 1 if anything does. `--update` writes the hashes anew; `--against REV` shows
 * the texts that differ from those of another commit; `--sample N` tries every so manieth seed; `--only NAME,NAME` tries
 * these, `--texts DIR` writes their texts there.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads"
import { seedNames, textsOf } from "./Seeds.ts"
import { differences, hashOf, keyOf, packageFolder, parsed, stored, type Hashes } from "./Texts.ts"

const hashesPath = fileURLToPath(new URL("oracle.txt", import.meta.url))
const workersMax = 2
const shownMax = 40
/** Publishing waits for a disk most of its time. */
const memory = "/dev/shm"

/** What the workers share: the seeds, and how many of them are taken. */
interface Share {
  readonly names: ReadonlyArray<string>
  readonly taken: Int32Array
  /** Where the texts go, if anybody wants to read them. */
  readonly folder: string | undefined
}
type Told = { readonly hashes: Hashes } | { readonly failed: string }

const work = async ({ names, taken, folder }: Share): Promise<void> => {
  // Each command listens to it.
  process.stdin.setMaxListeners(0)
  for (let next = Atomics.add(taken, 0, 1); next < names.length; next = Atomics.add(taken, 0, 1)) {
    const name = names[next] ?? ""
    try {
      const hashes = new Map<string, string>()
      for (const [aspect, text] of await textsOf(name)) {
        hashes.set(keyOf(name, aspect), hashOf(text))
        if (folder === undefined) continue
        const path = join(folder, name, `${aspect.replaceAll("/", ".")}.txt`)
        mkdirSync(dirname(path), { recursive: true })
        writeFileSync(path, text)
      }
      parentPort?.postMessage({ hashes } satisfies Told)
    } catch (error) {
      const why = error instanceof Error ? (error.stack ?? error.message) : JSON.stringify(error)
      parentPort?.postMessage({ failed: `${name}: ${why}` } satisfies Told)
    }
  }
}

/** The hashes of these seeds; throws if one of them does not come to its end. */
const hashesOf = async (names: ReadonlyArray<string>, folder: string | undefined): Promise<Hashes> => {
  const hashes = new Map<string, string>()
  const failures: Array<string> = []
  const taken = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const share: Share = { names, taken, folder }
  await Promise.all(
    Array.from({ length: Math.min(workersMax, names.length) }, () => {
      const worker = new Worker(fileURLToPath(import.meta.url), { workerData: share })
      worker.on("message", (told: Told) => {
        if ("failed" in told) failures.push(told.failed)
        else for (const [key, hash] of told.hashes) hashes.set(key, hash)
      })
      return new Promise<void>((resolve, reject) => worker.on("exit", () => resolve()).on("error", reject))
    }),
  )
  if (failures.length > 0) throw new Error(failures.join("\n"))
  return hashes
}

/** The texts of these seeds at another commit, and what became of them. */
const showAgainst = async (revision: string, names: ReadonlyArray<string>): Promise<void> => {
  const place = mkdtempSync(join(tmpdir(), "oracle-"))
  const tree = join(place, "tree")
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", args, { cwd: packageFolder, stdio: "pipe" })
  git("worktree", "add", "--detach", tree, revision)
  try {
    symlinkSync(join(packageFolder, "node_modules"), join(tree, "node_modules"))
    const args = [join(tree, "test/oracle/oracle.ts"), "--only", names.join(","), "--texts"]
    const shown = { cwd: place, stdio: "inherit" } as const
    spawnSync(process.execPath, [...args, join(place, "before")], shown)
    await hashesOf(names, join(place, "now"))
    spawnSync("git", ["diff", "--no-index", "--no-prefix", "before", "now"], shown)
  } finally {
    git("worktree", "remove", "--force", tree)
    rmSync(place, { recursive: true, force: true })
  }
}

const chosen = (sample: string | undefined, only: string | undefined): ReadonlyArray<string> => {
  if (only !== undefined) return only.split(",")
  const step = sample === undefined ? 1 : Math.max(1, seedNames.length / Number(sample))
  return seedNames.filter((_, place) => Math.floor(place / step) !== Math.floor((place - 1) / step))
}

const seedOf = (key: string): string => key.slice(0, key.indexOf(" "))

const tell = (changed: ReadonlyArray<string>, known: Hashes, found: Hashes): void => {
  for (const key of changed.slice(0, shownMax))
    console.log(`${known.has(key) ? (found.has(key) ? "differs" : "is gone") : "is new"}: ${key}`)
  if (changed.length > shownMax) console.log(`and ${changed.length - shownMax} more`)
}

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      update: { type: "boolean", default: false },
      against: { type: "string" },
      sample: { type: "string" },
      only: { type: "string" },
      texts: { type: "string" },
    },
  })
  const startedAt = performance.now()
  const names = chosen(values.sample, values.only)
  const found = await hashesOf(names, values.texts)
  if (values.texts !== undefined) return
  const tried = new Set(names)
  const isTried = (key: string) => tried.has(seedOf(key))
  const known = parsed(readFileSync(hashesPath, "utf8"))
  const changed = differences(known, found, isTried)
  tell(changed, known, found)
  const { user, system } = process.cpuUsage()
  console.log(
    `${names.length} seeds, ${found.size} texts, ${changed.length} of them not as before, in ` +
      `${((performance.now() - startedAt) / 1_000).toFixed(0)} s (${((user + system) / 1e6).toFixed(0)} CPU-s)`,
  )
  if (values.update) {
    const all = new Set(seedNames)
    const kept = [...known].filter(([key]) => !isTried(key) && all.has(seedOf(key)))
    writeFileSync(hashesPath, stored(new Map([...kept, ...found])))
    return
  }
  if (changed.length === 0) return
  process.exitCode = 1
  const seeds = [...new Set(changed.map(seedOf))]
  if (values.against === undefined)
    return console.log(
      "`npm run oracle -- --against HEAD` shows what the last commit said, and what is said now",
    )
  await showAgainst(values.against, seeds)
}

if (isMainThread) {
  // Of the whole process, so before the workers: the machine's own zone must not matter.
  process.env["TZ"] = "UTC"
  if (existsSync(memory)) process.env["TMPDIR"] ??= memory
  await main()
} else await work(workerData as Share)

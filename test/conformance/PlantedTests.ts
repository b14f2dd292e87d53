/**
 * Runs tests with a bug planted, in a process of its own that `planted.ts` gives one request after another:
 * the test runner stays, and only what a bug changes is loaded anew. The bug exists in the memory of this
 * process and of those that the tests start, so killing it at any moment leaves nothing behind.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { createVitest, type TestModule, type Vitest, type VitestPluginContext } from "vitest/node"
import { outsideTests, plantAll, plantedVariable, sourcesVariable, type Change } from "./PlantText.ts"

export interface TestsWanted {
  /** Test files, in the order in which they run; the first one with a failure is the last. */
  readonly files: ReadonlyArray<string>
  /** Row ids: tests whose titles carry one of these tags run; all tests where there is none. */
  readonly ids: ReadonlyArray<string>
  readonly changes: ReadonlyArray<Change>
  /** Variables of the environment for the tests; a process keeps those of its first request. */
  readonly environment?: Readonly<Record<string, string>>
}

export interface TestsSeen {
  /** Titles of the tests that ran, and of those that failed. */
  readonly passed: ReadonlyArray<string>
  readonly failed: ReadonlyArray<string>
  /** Files that could not even be loaded, and why. */
  readonly broken: ReadonlyArray<string>
  /** Sources in which the bug was really planted; those of processes that the tests start are not seen. */
  readonly planted: ReadonlyArray<string>
}

const root = fileURLToPath(new URL("../../", import.meta.url))
const preload = `--import=${new URL("PlantedSource.ts", import.meta.url).href}`

let current: ReadonlyArray<Change> = []
const planted = new Set<string>()

const fileOf = (id: string): string => (id.startsWith(root) ? id.slice(root.length) : "")
const isChanged = (file: string): boolean => current.some((change) => change.in === file)

/** The source that stands in for this one, in the folder that the environment names. */
const standIn = (file: string): string | undefined => {
  const folder = process.env[sourcesVariable]
  if (folder === undefined || file === "") return undefined
  const path = join(folder, file)
  return existsSync(path) ? path : undefined
}

const transform = (code: string, id: string): string | undefined => {
  const file = fileOf(id)
  const other = standIn(file)
  if (other !== undefined) return readFileSync(other, "utf8")
  if (!isChanged(file)) return undefined
  const text = plantAll(code, file, current)
  if (text === undefined) throw new Error(`no bug can be planted in ${file}`)
  planted.add(file)
  return text
}

/** A changed source is never taken from the runner's cache of transformed sources, nor put there. */
const planting = {
  name: "planted-bug",
  enforce: "pre",
  transform,
  configureVitest: ({ defineCacheKeyGenerator }: VitestPluginContext) =>
    defineCacheKeyGenerator(({ id }) =>
      isChanged(fileOf(id)) || standIn(fileOf(id)) !== undefined ? false : undefined,
    ),
} as const

/** Whoever starts this process may name a test runner. */
const testRunner = process.argv[2]

const openRunner = (): Promise<Vitest> =>
  createVitest(
    {
      root,
      watch: false,
      reporters: [{}],
      silent: true,
      // A bug must not stay in a module graph that the next file shares.
      isolate: true,
      maxWorkers: 1,
      bail: 1,
      fileParallelism: false,
      ...(testRunner === undefined ? {} : { runner: testRunner }),
    },
    { plugins: [planting] },
  )

const plant = (runner: Vitest, changes: ReadonlyArray<Change>): void => {
  for (const change of [...current, ...changes]) runner.invalidateFile(root + change.in)
  current = changes
  planted.clear()
  if (changes.length === 0) delete process.env[plantedVariable]
  else process.env[plantedVariable] = JSON.stringify(changes)
}

const brokenIn = (module: TestModule): ReadonlyArray<string> =>
  module.errors().map(({ message }) => `${module.relativeModuleId}: ${message}`)

/** The runner keeps and tells the results of earlier runs as well, and counts their failures. */
const forgetResults = (runner: Vitest): void => {
  runner.state.filesMap.clear()
  runner.state.idMap.clear()
}

const runFile = async (
  runner: Vitest,
  file: string,
  pattern: RegExp,
): Promise<Omit<TestsSeen, "planted">> => {
  forgetResults(runner)
  runner.setGlobalTestNamePattern(pattern)
  const specification = runner.getRootProject().createSpecification(root + file)
  const { testModules: told, unhandledErrors } = await runner.runTestSpecifications([specification])
  const testModules = told.filter(({ moduleId }) => moduleId === root + file)
  const tests = testModules.flatMap((module) => [...module.children.allTests()])
  const named = (state: string) =>
    tests.filter((test) => test.result().state === state).map(({ fullName }) => fullName)
  return {
    passed: named("passed"),
    failed: [...named("failed"), ...unhandledErrors.map((error) => `${outsideTests}${String(error)}`)],
    broken: testModules.flatMap(brokenIn),
  }
}

const escape = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")

const runTests = async (runner: Vitest, wanted: TestsWanted): Promise<TestsSeen> => {
  Object.assign(process.env, wanted.environment)
  plant(runner, wanted.changes)
  const pattern = new RegExp(wanted.ids.map((id) => escape(`[${id}]`)).join("|"))
  const seen = { passed: [] as Array<string>, failed: [] as Array<string>, broken: [] as Array<string> }
  for (const file of wanted.files) {
    const { passed, failed, broken } = await runFile(runner, file, pattern)
    seen.passed.push(...passed)
    seen.failed.push(...failed)
    seen.broken.push(...broken)
    if (seen.failed.length > 0 || seen.broken.length > 0) break
  }
  return { ...seen, planted: [...planted] }
}

process.env["NODE_OPTIONS"] = [process.env["NODE_OPTIONS"] ?? "", preload].join(" ").trim()
const runner = await openRunner()
await runner.standalone()
process.on("message", (wanted: TestsWanted) => {
  void runTests(runner, wanted).then((seen) => process.send?.(seen))
})
process.on("disconnect", () => process.exit())
process.send?.("ready")

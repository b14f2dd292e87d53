/**
 * The test runner that runs each test once as it is, and once more for every mutant that is still alive in a function
 * that the test reached. A mutant counts as caught only where the test passes without it before and after. What
 * happens is told line by line, so that a test that never ends is known by the line before.
 */
import { appendFileSync, readFileSync } from "node:fs"
import { TestRunner, type RunnerTestCase } from "vitest"
import { codeOf } from "../../src/base/DurableFile.ts"
import type { Switch } from "./Switched.ts"

/** The file that says what is to be tried. */
export const planVariable = "NIGHTJAR_MUTANTS_PLAN"

export interface Plan {
  /** Where the lines go. */
  readonly told: string
  /** Still alive: its number, and the function that it stands in. */
  readonly mutants: ReadonlyArray<{ readonly number: number; readonly function: string }>
  /** The tests that are asked, by their titles; without it all but the slow ones, which are told. */
  readonly tests?: ReadonlyArray<string>
}

export type Told =
  /** It ends by itself within the limit, unless it stops everything. */
  | { readonly _tag: "Tried"; readonly number: number; readonly limitMs: number }
  | { readonly _tag: "Caught"; readonly number: number; readonly by: string }
  | { readonly _tag: "Late"; readonly number: number; readonly by: string }
  /** It is asked last, about what all others let pass. */
  | { readonly _tag: "Slow"; readonly test: string }
  | { readonly _tag: "Unsound"; readonly test: string; readonly why: string }
  | { readonly _tag: "Reached"; readonly functions: ReadonlyArray<string> }
  /** Functions that ran before the tests, or once for all of them: no switch can change that. */
  | { readonly _tag: "Loaded"; readonly functions: ReadonlyArray<string> }

const shared = globalThis as typeof globalThis & { nightjarSwitch?: Switch }
/** A whole night in virtual time takes longer. */
const quickMaxMs = 1_000
const late = Symbol("late")
/** What a test throws that skips itself. */
const skipped = "VITEST_PENDING"

const titleOf = (test: RunnerTestCase): string => {
  const names: Array<string> = []
  for (let at: { name: string; suite?: unknown } | undefined = test; at; at = at.suite as typeof at)
    names.unshift(at.name)
  return names.filter(Boolean).join(" > ")
}

export class SwitchingRunner extends TestRunner {
  readonly #plan: Plan = JSON.parse(readFileSync(process.env[planVariable] ?? "", "utf8"))
  readonly #dead = new Set<number>()
  readonly #reached = new Set<string>()
  #isLoaded = false

  #tell(told: Told): void {
    appendFileSync(this.#plan.told, `${JSON.stringify(told)}\n`)
  }

  async runTask(test: RunnerTestCase): Promise<void> {
    const run = TestRunner.getTestFn(test)
    const state = (shared.nightjarSwitch ??= { on: -1, reached: new Set() })
    if (!this.#isLoaded) this.#tell({ _tag: "Loaded", functions: [...state.reached] })
    this.#isLoaded = true
    state.reached.clear()
    const title = titleOf(test)
    const leaveOut = (why: string, functions: Iterable<string>) => {
      this.#tell({ _tag: "Loaded", functions: [...functions] })
      this.#tell({ _tag: "Unsound", test: title, why })
    }
    const startedAt = performance.now()
    const isSound = await this.#passes(run)
    if (this.#plan.tests?.includes(title) === false) return
    const reached = new Set(state.reached)
    this.#tell({ _tag: "Reached", functions: [...reached].filter((one) => !this.#reached.has(one)) })
    for (const one of reached) this.#reached.add(one)
    // A mutant that never ended may have left something behind: what this test would have said is not known.
    if (!isSound) return leaveOut("it fails by itself", reached)
    const elapsedMs = performance.now() - startedAt
    const limitMs = 5_000 + 10 * elapsedMs
    const alive = this.#plan.mutants.filter((one) => reached.has(one.function) && !this.#dead.has(one.number))
    if (alive.length === 0) return
    if (this.#plan.tests === undefined && elapsedMs > quickMaxMs)
      return this.#tell({ _tag: "Slow", test: title })
    state.reached.clear()
    if (!(await this.#passes(run))) return leaveOut("it passes once only", reached)
    // What was done once for all tests, as a layer is built, is not done again under a mutant.
    const once = [...reached].filter((one) => !state.reached.has(one))
    if (once.length > 0) this.#tell({ _tag: "Loaded", functions: once })
    for (const { number } of alive) {
      this.#tell({ _tag: "Tried", number, limitMs })
      const end = await this.#with(state, number, run, limitMs)
      if (end === undefined) continue
      const isSound = end === late || (await this.#passes(run))
      if (!isSound) return leaveOut(`it does not pass again after mutant ${number}`, reached)
      this.#dead.add(number)
      this.#tell({ _tag: end === late ? "Late" : "Caught", number, by: title })
    }
  }

  async #passes(run: () => unknown): Promise<boolean> {
    try {
      await run()
      return true
    } catch (cause) {
      if (codeOf(cause) === skipped) throw cause
      return false
    }
  }

  /** Undefined where the test passes. */
  async #with(state: Switch, number: number, run: () => unknown, limitMs: number): Promise<unknown> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const limit = new Promise((resolve) => {
      timer = setTimeout(() => resolve(late), limitMs)
    })
    state.on = number
    try {
      return (await Promise.race([Promise.resolve(run()).then(() => undefined), limit])) ?? undefined
    } catch {
      return "caught"
    } finally {
      clearTimeout(timer)
      state.on = -1
    }
  }
}

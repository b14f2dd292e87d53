/**
 * The process that runs tests with a bug planted, as its parent sees it: one request at a time, each with a
 * time limit. Whoever does not answer in time is killed with all that it started, and the next request gets
 * a new one.
 */
import { fork, type ChildProcess } from "node:child_process"
import { fileURLToPath } from "node:url"
import type { TestsSeen, TestsWanted } from "./PlantedTests.ts"

export interface TestProcess {
  /** What the tests showed; "late" when there was no answer within `limitMs`. */
  readonly run: (wanted: TestsWanted, limitMs: number) => Promise<TestsSeen | "late">
  readonly stop: () => void
}

const program = fileURLToPath(new URL("PlantedTests.ts", import.meta.url))

const nextMessage = (child: ChildProcess, limitMs: number): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => settle(() => resolve("late")), limitMs)
    const onMessage = (message: unknown) => settle(() => resolve(message))
    const onExit = () => settle(() => reject(new Error("the process that runs the tests is gone")))
    const settle = (then: () => void) => {
      clearTimeout(timer)
      child.off("message", onMessage)
      child.off("exit", onExit)
      then()
    }
    child.once("message", onMessage)
    child.once("exit", onExit)
  })

/** Its own process group, so that what its tests started ends with it. */
const startChild = async (runner: ReadonlyArray<string>): Promise<ChildProcess> => {
  const child = fork(program, runner, { stdio: ["ignore", "ignore", "inherit", "ipc"], detached: true })
  await nextMessage(child, 60_000)
  return child
}

const stopChild = ({ pid }: ChildProcess): void => {
  if (pid === undefined) return
  try {
    process.kill(-pid, "SIGKILL")
  } catch {
    // It ended by itself.
  }
}

export const openTestProcess = (): TestProcess => open([])
/** The same with a test runner of its own, a module that exports one. */
export const openProcessWith = (runner: string): TestProcess => open([runner])

const open = (runner: ReadonlyArray<string>): TestProcess => {
  let child: ChildProcess | undefined
  const stop = () => {
    if (child !== undefined) stopChild(child)
    child = undefined
  }
  const run = async (wanted: TestsWanted, limitMs: number): Promise<TestsSeen | "late"> => {
    child ??= await startChild(runner)
    child.send(wanted)
    const answer = await nextMessage(child, limitMs).catch((cause: unknown) => {
      stop()
      throw cause
    })
    if (answer === "late") {
      stop()
      return "late"
    }
    return answer as TestsSeen
  }
  return { run, stop }
}

/** Each process takes the next piece of work when it is done with one; the answers stand in the order of the work. */
export const inTurns = async <A, B>(
  processes: ReadonlyArray<TestProcess>,
  work: ReadonlyArray<A>,
  act: (process: TestProcess, one: A) => Promise<B>,
): Promise<ReadonlyArray<B>> => {
  const queue = work.entries()
  const done: Array<B> = []
  await Promise.all(
    processes.map(async (process) => {
      for (const [index, one] of queue) done[index] = await act(process, one)
    }),
  )
  return done
}

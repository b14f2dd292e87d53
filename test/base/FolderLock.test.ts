/** The lock of an output folder between real processes. */
import { afterAll, describe, expect, it } from "@effect/vitest"
import { Clock, Duration, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync } from "node:fs"
import { symlinkSync, writeFileSync } from "node:fs"
import { hostname } from "node:os"
import { join } from "node:path"
import { durableFiles } from "../../src/base/DurableFile.ts"
import { FolderLocked, awaitLock, lockFolder } from "../../src/base/FolderLock.ts"
import { sharedFolder } from "../harness/Folder.ts"
import { effect } from "../harness/Steps.ts"

const holder = new URL("LockHolder.ts", import.meta.url).pathname
const children: Array<ChildProcess> = []
const root = sharedFolder()
afterAll(() => {
  for (const child of children) child.kill("SIGKILL")
})

const startHolder = async (path: string) => {
  const child = spawn(process.execPath, ["--expose-gc", holder, path], { stdio: ["pipe", "pipe", "inherit"] })
  children.push(child)
  const [line] = (await once(child.stdout, "data")) as [Buffer]
  return { child, said: line.toString().trim() }
}

const tryLock = (path: string) =>
  Effect.runPromise(
    lockFolder(path).pipe(
      Effect.match({ onSuccess: () => "held", onFailure: ({ _tag }) => _tag }),
      Effect.scoped,
    ),
  )

describe("the lock of an output folder", () => {
  it("keeps every other process out while its holder runs, and is free once that is killed [promise 8 collection] [promise 8]", async () => {
    const path = join(root, "run.lock")
    const first = await startHolder(path)
    expect([first.said, await tryLock(path)]).toEqual(["held", "FolderLocked"])
    first.child.kill("SIGKILL")
    await once(first.child, "exit")
    expect(await tryLock(path)).toBe("held")
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  it("is released with its scope, and also keeps out the same process", async () => {
    const path = join(root, "scoped.lock")
    const twice = Effect.gen(function* () {
      yield* lockFolder(path)
      return yield* Effect.flip(Effect.scoped(lockFolder(path)))
    })
    expect(await Effect.runPromise(Effect.scoped(twice))).toBeInstanceOf(FolderLocked)
    expect([await tryLock(path), await tryLock(path)]).toEqual(["held", "held"])
  })

  effect("keeps its process to the folder, moved away or unmounted [promise 5 moved]", function* () {
    const folder = join(root, "held")
    const moved = join(root, "moved")
    const files = yield* durableFiles
    const refused = (write: () => void) => {
      expect(write).toThrow(`${folder} was moved or unmounted while this process works in it`)
    }
    mkdirSync(folder)
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* lockFolder(join(folder, "run.lock"))
        files.makeFolder(join(folder, "landing"), 0o700)
        renameSync(folder, moved)
        refused(() => files.makeFolder(join(folder, "landing", "run"), 0o700))
        expect(existsSync(folder)).toBe(false)
        // As where a disk was unmounted.
        mkdirSync(folder)
        refused(() => files.replace(join(folder, "manifest.json"), "{}", 0o600))
        refused(() => files.makeFolder(join(folder, "landing"), 0o700))
        expect(readdirSync(folder)).toEqual([])
        files.write(join(root, "held-beside"), "", 0o600)
        rmSync(folder, { recursive: true })
        renameSync(moved, folder)
        files.replace(join(folder, "manifest.json"), "{}", 0o600)
      }),
    )
    renameSync(folder, moved)
    files.makeFolder(folder, 0o700)
  })

  effect(
    "once removed by a person, lets its process write nothing more: another may work there [promise 8 removed]",
    function* () {
      const folder = join(root, "unlocked")
      const path = join(folder, "run.lock")
      const files = yield* durableFiles
      mkdirSync(folder)
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* lockFolder(path)
          const opened = files.append(join(folder, "segment"), "ax", 0o600)
          opened.append("before")
          rmSync(path)
          for (const write of [
            () => opened.append("after"),
            () => files.replace(join(folder, "manifest.json"), "{}", 0o600),
            () => files.remove(`${path}.json`),
          ])
            expect(write).toThrow(`${path} was removed while this process works`)
          opened.close()
          // What another process has there by now is not this one's to remove.
          yield* Effect.scoped(lockFolder(path))
          writeFileSync(`${path}.json`, "of another process")
        }),
      )
      expect(readFileSync(join(folder, "segment"), "utf8")).toBe("before")
      expect(readFileSync(`${path}.json`, "utf8")).toBe("of another process")
    },
  )

  it("that cannot be used is not reported as held by somebody else", async () => {
    const path = join(root, "folder.lock")
    mkdirSync(path)
    expect(await tryLock(path)).toBe("LockFailed")
  })
})

const night = Date.UTC(2026, 10, 21, 22, 30)
const at = (seconds: number): string => new Date(night + seconds * 1_000).toISOString()

/** What somebody who finds the lock held is told of its holder. */
const holderOf = (path: string) =>
  lockFolder(path).pipe(
    Effect.flip,
    Effect.scoped,
    Effect.map((failure) => (failure instanceof FolderLocked ? failure.holder : failure.message)),
  )

describe("who holds the lock", () => {
  effect("is its process, host, start and what it works on, and nothing afterwards", function* () {
    yield* TestClock.setTime(night)
    const path = join(root, "named.lock")
    const whom = `process ${process.pid} on ${hostname()} since ${at(0)}, `
    const told = yield* Effect.scoped(
      Effect.gen(function* () {
        const { worksOn } = yield* lockFolder(path)
        const idle = yield* holderOf(path)
        yield* TestClock.adjust("1 hour")
        yield* worksOn(["run nightly.2026-11-21", "job other, without a run yet"])
        const mode = statSync(`${path}.json`).mode & 0o777
        return { idle, busy: yield* holderOf(path), mode }
      }),
    )
    expect(told).toEqual({
      idle: `${whom}no run`,
      busy: `${whom}run nightly.2026-11-21, job other, without a run yet`,
      mode: 0o600,
    })
    expect([`${path}.json`, `${path}.json.tmp`].map(existsSync)).toEqual([false, false])
  })

  effect("[exit 5 holder] is said to be unknown, in part or whole, whatever its file holds", function* () {
    const path = join(root, "unnamed.lock")
    const file = `${path}.json`
    const ended = spawn("true")
    yield* Effect.promise(() => once(ended, "exit"))
    yield* lockFolder(path)
    const told = function* (make: () => void) {
      rmSync(file, { force: true, recursive: true })
      make()
      return (yield* holderOf(path)).replaceAll(file, "FILE")
    }
    const written = (text: string) => told(() => writeFileSync(file, text))
    const unknown = (why: string) => `it is not known which (${why})`
    // As an older version leaves it, torn, of another kind, and from a process that was killed.
    expect(yield* told(() => undefined)).toBe(unknown("there is no FILE"))
    for (const text of ["", '{"pid":12,"ho', "[]", '{"pid":"12"}', '{"pid":-1}', "\0\0"])
      expect(yield* written(text)).toBe(unknown("FILE is damaged"))
    expect(yield* told(() => mkdirSync(file))).toBe(unknown("FILE cannot be read: EISDIR"))
    expect(yield* told(() => symlinkSync(file, file))).toBe(unknown("FILE cannot be read: ELOOP"))
    expect(yield* written(JSON.stringify({ pid: ended.pid, host: hostname() }))).toBe(
      unknown(`FILE names process ${ended.pid}, which has ended`),
    )
    expect(yield* written("{}")).toBe(
      "process (number unknown) on an unknown host since (time unknown), its run is not known",
    )
    expect(yield* written('{"pid":1,"host":"far","since":"then","works_on":["run a"]}')).toBe(
      "process 1 on far since then, run a",
    )
  })

  effect("costs the holder nothing where it cannot be written", function* () {
    const path = join(root, "mute.lock")
    mkdirSync(`${path}.json`)
    yield* lockFolder(path)
    expect(yield* holderOf(path)).toMatch(/^it is not known which \(\S+ cannot be read: EISDIR\)$/)
  })
})

describe("waiting for the lock", () => {
  /** A wait under way, and what it said so far. */
  const waiting = Effect.fnUntraced(function* (path: string, longest: Duration.Input, until = Infinity) {
    const said = new Array<string>()
    const scope = yield* Scope.make()
    const wait = { longest: Duration.fromInputUnsafe(longest), until }
    const onHolder = (holder: string) =>
      Effect.sync(() => void said.push(holder.replace(/^process \d+ on .* since /, "")))
    const ended = awaitLock(path, ["run second"], { ...wait, onHolder }).pipe(
      Effect.map(({ waitedMs }) => waitedMs),
      Effect.catchTag("FolderLocked", ({ holder }) => Effect.succeed(holder)),
      Scope.provide(scope),
    )
    const fiber = yield* Effect.forkChild(ended)
    yield* TestClock.adjust(0)
    return { said, fiber, over: Fiber.join(fiber), release: Scope.close(scope, Exit.void) } as const
  })
  /** Somebody holds the lock until what this returns is done. */
  const holding = (path: string, works: string) =>
    Effect.flatMap(Scope.make(), (scope) =>
      Effect.as(Scope.provide(lockFolder(path, [works]), scope), Scope.close(scope, Exit.void)),
    )
  const place = (name: string) => join(root, `${name}.lock`)
  const begin = TestClock.setTime(night)

  effect("takes it within a second of its release, and says each time for whom it waits", function* () {
    yield* begin
    const path = place("released")
    const first = yield* holding(path, "run first")
    const wait = yield* waiting(path, "8 hours")
    yield* TestClock.adjust("3 seconds")
    yield* first
    const next = yield* holding(path, "run next")
    yield* TestClock.adjust("3 seconds")
    yield* next
    yield* TestClock.adjust("1 second")
    expect(yield* wait.over).toBe(7_000)
    expect(wait.said).toEqual([`${at(0)}, run first`, `${at(3)}, run next`])
    expect(yield* holderOf(path)).toContain(`since ${at(7)}, run second`)
    yield* wait.release
  })

  effect("[exit 5 wait] ends after the given time, or at the night's end if that is first", function* () {
    yield* begin
    const path = place("in vain")
    const release = yield* holding(path, "run first")
    const given = yield* waiting(path, "6 seconds")
    const tonight = yield* waiting(path, "8 hours", night + 2_000)
    const past = yield* waiting(path, "8 hours", night)
    const none = yield* waiting(path, 0)
    const isOver = () => [given, tonight, past, none].map(({ fiber }) => fiber.pollUnsafe() !== undefined)
    expect(isOver()).toEqual([false, false, true, true])
    yield* TestClock.adjust("1999 millis")
    expect(isOver()).toEqual([false, false, true, true])
    yield* TestClock.adjust("1 millis")
    expect(isOver()).toEqual([false, true, true, true])
    yield* TestClock.adjust("3999 millis")
    expect(isOver()).toEqual([false, true, true, true])
    yield* TestClock.adjust("1 millis")
    const whom = `process ${process.pid} on ${hostname()} since ${at(0)}, run first`
    expect(yield* given.over).toBe(whom)
    expect([none.said, past.said, given.said]).toEqual([[], [], [`${at(0)}, run first`]])
    yield* release
  })

  effect("counts its time on a clock that nobody sets, and the night's end on the machine's", function* () {
    yield* begin
    const path = place("set")
    const release = yield* holding(path, "run first")
    const clock = yield* Clock.Clock
    let setMs = 0
    const currentTimeMillis = Effect.map(clock.currentTimeMillis, (ms) => ms + setMs)
    const onMachine = Effect.provideService(Clock.Clock, { ...clock, currentTimeMillis })
    const given = yield* onMachine(waiting(path, "3 seconds"))
    const tonight = yield* onMachine(waiting(path, "8 hours", night + 2 * 3_600_000))
    const isOver = () => [given, tonight].map(({ fiber }) => fiber.pollUnsafe() !== undefined)
    setMs = -3_600_000
    yield* TestClock.adjust("1 second")
    expect(isOver()).toEqual([false, false])
    setMs = 3_600_000
    yield* TestClock.adjust("1 second")
    expect(isOver()).toEqual([false, false])
    yield* TestClock.adjust("1 second")
    expect(isOver()).toEqual([true, false])
    setMs = 2 * 3_600_000
    yield* TestClock.adjust("1 second")
    expect(isOver()).toEqual([true, true])
    yield* release
  })

  effect("serves several that wait in turn, and is given up once it is interrupted", function* () {
    yield* begin
    const path = place("several")
    const release = yield* holding(path, "run first")
    const waits = yield* Effect.forEach([1, 2, 3], () => waiting(path, "8 hours"))
    const given = yield* waiting(path, "8 hours")
    yield* Fiber.interrupt(given.fiber)
    yield* release
    yield* TestClock.adjust("1 second")
    const over = () => waits.filter(({ fiber }) => fiber.pollUnsafe() !== undefined)
    for (const number of [1, 2, 3]) {
      expect(over()).toHaveLength(number)
      yield* Effect.forEach(over(), (one) => one.release)
      yield* TestClock.adjust("1 second")
    }
    expect(yield* Effect.scoped(Effect.as(lockFolder(path), "free"))).toBe("free")
  })
})

import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, expect, it } from "@effect/vitest"
import {
  Clock,
  ConfigProvider,
  Effect,
  Fiber,
  FileSystem,
  Layer,
  PlatformError,
  Redacted,
  Sink,
  Stream,
} from "effect"
import { ChildProcessSpawner } from "effect/process"
import { TestClock } from "effect/testing"
import { vi } from "vitest"
import { MachineClock, ScaledClock } from "../../src/base/Time.ts"
import { describeReference, parseReference, type SecretReference } from "../../src/jobs/Scalars.ts"
import { KnownSecrets, makeKnownSecrets } from "../../src/privacy/KnownSecrets.ts"
import { resolveReference, Secrets } from "../../src/jobs/Secrets.ts"
import { effect, withLayer } from "../harness/Steps.ts"

const live = Layer.provideMerge(Secrets.layer, NodeServices.layer)
const environment = ConfigProvider.layer(ConfigProvider.fromEnvRecord({ PASSWORD: "hunter2", EMPTY: "" }))
const exec = (command: string): SecretReference => ({ _tag: "Exec", command })
const value = (reference: SecretReference) => resolveReference(reference).pipe(Effect.map(Redacted.value))
const failure = (reference: SecretReference) => value(reference).pipe(Effect.flip)

it("a secret reference is read from its spelling, files relative to the job's folder", () => {
  expect(parseReference("env:A_1", "jobs")).toEqual({ _tag: "Env", name: "A_1" })
  expect(parseReference("file:s/a.pin", "jobs")).toEqual({ _tag: "File", path: "jobs/s/a.pin" })
  expect(parseReference("file:/s/a.pin", "jobs")).toEqual({ _tag: "File", path: "/s/a.pin" })
  expect(parseReference("exec:pass show a:b", "jobs")).toEqual(exec("pass show a:b"))
  for (const wrong of ["", "env:", "env:1A", "env:A B", "file: ", "exec:", "http:x", "hunter2"]) {
    expect(parseReference(wrong, "jobs")).toBeUndefined()
  }
  expect(describeReference(exec("echo hunter2"))).toBe("exec:…")
})

describe("secrets", () => {
  const { live: onMachine } = withLayer(Layer.merge(live, environment))

  onMachine(
    "come from the environment, a file without its final line break, and a command's output [promise 4 blanks]",
    function* () {
      const files = yield* FileSystem.FileSystem
      const path = `${yield* files.makeTempDirectoryScoped()}/pin`
      yield* files.writeFileString(path, " 0042 \r\n")
      expect(yield* value({ _tag: "Env", name: "PASSWORD" })).toBe("hunter2")
      expect(yield* value({ _tag: "File", path })).toBe(" 0042 ")
      expect(yield* value(exec("echo '  hunter2 '; cat"))).toBe("  hunter2 ")
    },
  )

  onMachine("are known as secrets as soon as they are read", function* () {
    const known = makeKnownSecrets()
    known.hold("hunter2", "login")
    yield* Effect.forEach([{ _tag: "Env", name: "PASSWORD" } as const, exec("echo from-exec-7")], value).pipe(
      Effect.provideService(KnownSecrets, known),
    )
    expect(known.clean("a hunter2 b from-exec-7", "own")).toBe("a [blanked] b [blanked]")
  })

  onMachine("are at most 65,536 bytes long, in however many pieces a command writes them", function* () {
    const writing = (count: number) =>
      exec(`printf %${count}s x | tr ' ' y; printf %40000s x | tr ' ' z; printf e`)
    expect(yield* value(writing(25_535))).toBe(`${"x".padStart(25_535, "y")}${"x".padStart(40_000, "z")}e`)
    expect((yield* failure(writing(25_536))).message).toBe("exec:…: it is longer than 65536 bytes")
  })

  onMachine(
    "[promise 12 exec] of a command see PATH, HOME, LANG and the variables that it names, no others",
    function* () {
      vi.stubEnv("NIGHTJAR_TEST_SECRET", "from-this-process-7")
      const given = {
        PATH: "/usr/bin:/bin",
        HOME: "/home/me",
        LANG: "C",
        TOKEN: "t",
        ADDRESS: "a",
        APP: "s",
      }
      // What a shell sets itself.
      const seen = "env | grep -vE '^(_|PWD|OLDPWD|SHLVL)=' | sort"
      const told = (command: string) =>
        Effect.provideService(
          Effect.map(value(exec(command)), (text) => text.split("\n")),
          ConfigProvider.ConfigProvider,
          ConfigProvider.fromEnvRecord(given),
        )
      const always = ["HOME=/home/me", "LANG=C", "PATH=/usr/bin:/bin"]
      expect(yield* told(seen)).toEqual(always)
      expect(yield* told(`: "$TOKEN \${ADDRESS:-none} $NOPE $1 $APPLE"; ${seen}`)).toEqual([
        "ADDRESS=a",
        ...always,
        "TOKEN=t",
      ])
      expect(yield* told(`TOKEN="$TOKEN" sh -c 'echo $TOKEN'`)).toEqual(["t"])
      vi.unstubAllEnvs()
    },
  )

  onMachine("that cannot be resolved say why, and show nothing of their value or command", function* () {
    const files = yield* FileSystem.FileSystem
    const path = `${yield* files.makeTempDirectoryScoped()}/big`
    yield* files.writeFileString(path, "hunter2".repeat(10_000))
    const cases: ReadonlyArray<readonly [SecretReference, string]> = [
      [{ _tag: "Env", name: "NOPE" }, "env:NOPE: the environment has no such variable, or an empty one"],
      [{ _tag: "Env", name: "EMPTY" }, "env:EMPTY: the environment has no such variable, or an empty one"],
      [{ _tag: "File", path: "/nope" }, "file:/nope: it cannot be read (there is no such file)"],
      [{ _tag: "File", path }, `file:${path}: it cannot be read (it is larger than 65 kB)`],
      [exec("echo hunter2; echo hunter2 >&2; exit 3"), "exec:…: the command ended with exit code 3"],
      [exec("echo hunter2; kill -9 $$"), "exec:…: the command was killed"],
      [exec("true # hunter2"), "exec:…: it is empty"],
      [exec("yes hunter2"), "exec:…: it is longer than 65536 bytes"],
      [exec("hunter2-is-no-command"), "exec:…: the command ended with exit code 127"],
    ]
    for (const [reference, message] of cases) {
      const error = yield* failure(reference)
      expect(error.message).toBe(message)
      expect(`${JSON.stringify(error)} ${String(error)} ${error.stack}`).not.toContain("hunter2")
    }
  })

  onMachine(
    "[promise 4 lost bytes] that are not UTF-8 are refused, not sent as another password",
    function* () {
      const lost = "it has U+FFFD in the place of bytes that are not UTF-8"
      // What Node makes of such bytes in a variable, which a command can be given, too.
      const given = ConfigProvider.fromEnvRecord({ PATH: "/usr/bin:/bin", PIN: "pa\uFFFDo" })
      for (const reference of [{ _tag: "Env", name: "PIN" } as const, exec('printf %s "$PIN"')])
        expect(
          (yield* Effect.provideService(failure(reference), ConfigProvider.ConfigProvider, given)).reason,
        ).toBe(lost)
      expect((yield* failure(exec(String.raw`printf 'pa\361o'`))).message).toBe(`exec:…: ${lost}`)
      expect(yield* value(exec(String.raw`printf 'pa\303\261o'`))).toBe("paño")
    },
  )

  effect("say of a machine that refuses them what it refused, and no more", function* () {
    const refused = PlatformError.systemError({
      _tag: "PermissionDenied",
      module: "hunter2",
      method: "hunter2",
      description: "hunter2",
    })
    const handle = ChildProcessSpawner.makeHandle({
      pid: ChildProcessSpawner.ProcessId(1),
      exitCode: Effect.fail(refused),
      isRunning: Effect.succeed(false),
      kill: () => Effect.void,
      stdin: Sink.drain,
      stdout: Stream.fail(refused),
      stderr: Stream.empty,
      all: Stream.empty,
      getInputFd: () => Sink.drain,
      getOutputFd: () => Stream.empty,
      unref: Effect.succeed(Effect.void),
    })
    const told = (spawned: Effect.Effect<typeof handle, PlatformError.PlatformError>) => {
      const spawner = ChildProcessSpawner.ChildProcessSpawner.of(ChildProcessSpawner.make(() => spawned))
      const given = Layer.succeed(ChildProcessSpawner.ChildProcessSpawner, spawner)
      return failure(exec("x")).pipe(Effect.provide(Layer.provide(Secrets.layer, given)))
    }
    expect((yield* told(Effect.fail(refused))).message).toBe("exec:…: the command cannot be started")
    expect((yield* told(Effect.succeed(handle))).message).toBe("exec:…: the command's output cannot be read")
  })

  it.effect("give a command 30 seconds", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(failure(exec("exec sleep 600")))
      yield* Effect.yieldNow
      yield* TestClock.adjust("30 seconds")
      const error = yield* Fiber.join(fiber)
      assert.strictEqual(error.message, "exec:…: the command did not end within 30 seconds")
    }).pipe(Effect.provideServiceEffect(MachineClock, Clock.Clock), Effect.provide(live)),
  )

  it.live("give it as long on a clock that is a thousand times as fast", () =>
    Effect.gen(function* () {
      const { resolve } = yield* Secrets
      const known = yield* resolve(exec("sleep 0.1; echo done")).pipe(
        Effect.provideService(KnownSecrets, makeKnownSecrets()),
      )
      assert.strictEqual(Redacted.value(known), "done")
    }).pipe(Effect.provide(Layer.merge(live, ScaledClock.layer({ speed: 1_000, originMs: 0 })))),
  )
})

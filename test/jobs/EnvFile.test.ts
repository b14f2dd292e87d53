/**
 * Variables from the file beside a job: who wins, who may read the file, and what a refusal says.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { afterEach, beforeEach, describe, expect } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Redacted } from "effect"
import { Secrets } from "../../src/jobs/Secrets.ts"
import { loadJob } from "../../src/jobs/LoadJob.ts"
import { referencesOf } from "../../src/jobs/EnvFile.ts"
import { renderProblem } from "../../src/base/DurableFile.ts"
import { KnownSecrets, makeKnownSecrets } from "../../src/privacy/KnownSecrets.ts"
import { withLayer } from "../harness/Steps.ts"

const job = `name: small
service:
  base_url: https://\${HOST}/api
  flows_url: https://service.example/flows
  app_secret: env:APP
engines: [bank:website]
customers:
  - { id: one, parameters: { username: env:U, password: env:P } }
`
const written = `# made by hand
export APP='app secret # 1'
U=one
P="line 1
line 2"
HOST=service.example
EMPTY=
`

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "env-file-"))
})
afterEach(() => rmSync(folder, { recursive: true }))

const write = (name: string, text: string, mode = 0o600): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  chmodSync(path, mode)
  return path
}

const here = Layer.provideMerge(Secrets.layer, NodeServices.layer)
const bare = ConfigProvider.layer(ConfigProvider.fromEnvRecord({}))
const { effect } = withLayer(Layer.merge(here, bare))

/** The values of all references, or the problems; and what is blanked from now on. */
const look = (environment: Readonly<Record<string, string>>, envFile?: string, text = job) => {
  const known = makeKnownSecrets()
  return Effect.gen(function* () {
    const loaded = yield* loadJob(write("job.yaml", text, 0o644), envFile)
    const { resolve } = yield* Secrets
    const values = yield* Effect.forEach(referencesOf(loaded.job), (one) =>
      Effect.map(resolve(one), Redacted.value),
    )
    const { service } = loaded.job
    return { values, base_url: service._tag === "Remote" ? service.base_url : "", known }
  }).pipe(
    Effect.catch((error) =>
      Effect.succeed(
        error._tag === "JobInvalid"
          ? error.problems.map((problem) => renderProblem(problem).replaceAll(`${folder}/`, ""))
          : [error.message.replaceAll(`${folder}/`, "")],
      ),
    ),
    Effect.provide(here),
    Effect.provideService(KnownSecrets, known),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnvRecord({ ...environment })),
  )
}

const elsewhere = { APP: "a", U: "u", P: "p", HOST: "h.example" }
const fromFile = {
  values: ["app secret # 1", "one", "line 1\nline 2"],
  base_url: "https://service.example/api",
}

describe("the .env beside a job", () => {
  effect("gives the job every variable that the environment lacks, and its values are secrets", function* () {
    write(".env", written)
    const found = yield* look({})
    expect(found).toMatchObject(fromFile)
    expect("known" in found ? found.known.clean("app secret # 1", "own") : found).toBe("[blanked]")
  })

  effect("never replaces a variable of the environment", function* () {
    write(".env", written)
    const found = yield* look({ APP: "other", HOST: "other.example" })
    expect(found).toMatchObject({
      values: ["other", "one", "line 1\nline 2"],
      base_url: "https://other.example/api",
    })
  })

  effect(
    "[promise 12 variables] is refused with its mode and the command that mends it, if others can read it",
    function* () {
      write(".env", written, 0o640)
      const reason =
        "other users can read or change this file (mode 0640), so it is not used: run `chmod 600 .env`"
      expect(yield* look({})).toEqual([`.env:1:1: ${reason}`])
    },
  )

  effect("does not matter, whatever its mode, to a job that takes nothing from it", function* () {
    write(".env", "OTHER=1\nAPP=from the file\n", 0o644)
    expect(yield* look(elsewhere)).toMatchObject({ values: ["a", "u", "p"] })
  })

  effect("may be a folder, such as a Python environment: then there is no file", function* () {
    mkdirSync(join(folder, ".env"), { recursive: true })
    expect(yield* look(elsewhere)).toMatchObject({ values: ["a", "u", "p"] })
    expect(yield* look({ ...elsewhere, P: "" })).toEqual([
      "env:P: the environment has no such variable, or an empty one",
    ])
  })

  effect("has no variable that is empty", function* () {
    write(".env", written.replace("U=one", "U="))
    expect(yield* look({})).toEqual(["env:U: the environment has no such variable, or an empty one"])
  })
})

describe("a value of the file that Node would read otherwise than it looks", () => {
  const shown = (line: number, what: string) => [`env:P: .env: line ${line}: ${what}`]
  const texts: ReadonlyArray<readonly [string, string]> = [
    ["P=abcdefg#1x", "the value would end at its `#`: put it in quotes"],
    ["P=#hush", "the value would end at its `#`: put it in quotes"],
    [
      'export P="abcdefg',
      "the quote at the beginning of the value is never closed: put quotes of another kind around it all",
    ],
    [
      "P='it's",
      "what follows the closing quote would be lost: put quotes of another kind around the whole value",
    ],
    ["P= \nQ=1", "the white space behind its `=` makes the next line its value: remove it"],
  ]
  effect.each(texts)(
    "[promise 12 variables cut] is refused as a secret, with its line, if the job asks for it: %s",
    function* ([text, what]) {
      write(".env", `${written.replace(/^P=.*\n.*\n/m, "")}${text}\n`)
      expect(yield* look({})).toEqual(shown(6, what))
      expect(yield* look({ P: "p" })).toMatchObject({ values: ["app secret # 1", "one", "p"] })
    },
  )

  effect("[promise 12 variables twice] is one of two of the same name", function* () {
    write(".env", `${written}P=other\n`)
    const twice = "line 4 has another value of the same name: remove one of the two"
    expect(yield* look({})).toEqual(shown(8, twice))
  })

  effect("is none that stands there twice", function* () {
    write(".env", `${written}U=one\n`)
    expect(yield* look({})).toMatchObject(fromFile)
  })

  effect("is none with a comment after a space, and none within quotes", function* () {
    write(".env", "APP='a#1'\nU=one # note\nP=\"x\n# it's=1\nU=2\" # note\nHOST=h.example\t#note\n")
    expect(yield* look({})).toEqual({
      values: ["a#1", "one", "x\n# it's=1\nU=2"],
      base_url: "https://h.example/api",
      known: expect.anything(),
    })
  })

  effect("is an error of the job where its text has the variable", function* () {
    write(".env", written.replace("HOST=service.example", "HOST=service#1.example"))
    expect(yield* look({})).toEqual([".env:6:1: HOST: the value would end at its `#`: put it in quotes"])
  })
})

describe("the addresses of `notify`", () => {
  const told = `${job}notify: [{ url: env:ALERT }, { ping: env:WATCHDOG }, { command: [logger] }]\n`
  effect(
    "[exit notify variables] and of `telemetry` are taken from the file too: a timer has no other variables",
    function* () {
      const more =
        "ALERT=https://alert.example\nWATCHDOG=https://dog.example\nOTLP=https://collector.example\nHEADERS=a=b\n"
      const file = write(".env", `${written}${more}`)
      const { job: loaded } = yield* loadJob(write("job.yaml", told, 0o644))
      const { resolve } = yield* Secrets
      const [, , , ...addresses] = referencesOf(loaded)
      const inFile = (name: string) => ({ _tag: "Env", name, file })
      expect(addresses).toEqual([inFile("ALERT"), inFile("WATCHDOG")])
      const values = yield* Effect.forEach(addresses, (one) => Effect.map(resolve(one), Redacted.value))
      expect(values).toEqual(["https://alert.example", "https://dog.example"])
      const asked = `${job}telemetry: { otlp: env:OTLP, headers: env:HEADERS }\n`
      const { telemetry } = (yield* loadJob(write("job.yaml", asked, 0o644))).job
      expect(telemetry).toMatchObject({ otlp: inFile("OTLP"), headers: inFile("HEADERS") })
    },
  )
})

describe("a file named by --env-file", () => {
  effect("takes the place of the .env beside the job", function* () {
    write(".env", "APP=wrong\n")
    expect(yield* look({}, write("night.env", written))).toMatchObject(fromFile)
  })

  effect("has to be there, and closed to others even if nothing is taken from it", function* () {
    expect(yield* look(elsewhere, join(folder, "gone.env"))).toEqual([
      "gone.env:1:1: this file of variables cannot be read (there is no such file)",
    ])
    expect(yield* look(elsewhere, write("night.env", "", 0o644))).toEqual([
      "night.env:1:1: other users can read or change this file (mode 0644), so it is not used: " +
        "run `chmod 600 night.env`",
    ])
  })

  effect("may be a systemd credential, whose mode is systemd's own", function* () {
    const path = write("env", written, 0o440)
    expect(yield* look({ CREDENTIALS_DIRECTORY: folder }, path)).toMatchObject(fromFile)
  })
})

describe("a variable that was found in a file", () => {
  effect(
    "is taken from the environment if it is set there later, and a file opened later is refused",
    function* () {
      const file = write(".env", "U=from the file\n")
      const { resolve } = yield* Secrets
      const reference = { _tag: "Env", name: "U", file } as const
      const environment = ConfigProvider.fromEnvRecord({ U: "from the environment" })
      const value = yield* resolve(reference).pipe(
        Effect.provideService(ConfigProvider.ConfigProvider, environment),
      )
      expect(Redacted.value(value)).toBe("from the environment")
      write(".env", "U=from the file\n", 0o644)
      const { message } = yield* Effect.flip(resolve(reference))
      expect(message).toContain("(mode 0644), so it is not used")
    },
  )

  effect("stays what it was when the file was first read, and what the file lacks is said", function* () {
    const file = write(".env", "U=one\nP=two\n")
    const { resolve } = yield* Secrets
    const of = (name: string) => resolve({ _tag: "Env", name, file })
    expect(Redacted.value(yield* of("U"))).toBe("one")
    rmSync(file)
    expect(Redacted.value(yield* of("P"))).toBe("two")
    expect((yield* Effect.flip(of("APP"))).message).toBe(
      `env:APP: the environment has no such variable, or an empty one, and ${file} has none either`,
    )
  })
})

effect("a reference to a file may lead into the folder of systemd's credentials", function* () {
  write("pin", "4711\n")
  const environment = { CREDENTIALS_DIRECTORY: folder, HOST: "h.example", APP: "a", U: "u" }
  const inFile = job.replace("env:P", "'file:${CREDENTIALS_DIRECTORY}/pin'")
  expect(yield* look(environment, undefined, inFile)).toMatchObject({ values: ["a", "u", "4711"] })
})

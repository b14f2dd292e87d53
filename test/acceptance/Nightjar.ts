/**
 * The program as a user meets it: arguments, an environment, two streams, an exit code and a folder. It runs in this
 * process, and in one of its own where that matters.
 */
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DuckDBInstance, type DuckDBConnection } from "@duckdb/node-api"
import { command } from "./BuiltCommand.ts"
import type { FakeService } from "./FakeService.ts"
import { plainEnvironment } from "../harness/Environment.ts"
import { startHere, type Ended, type Running } from "../harness/ProgramHere.ts"

/** The published database as it was when this file was its newest. */
interface Opened {
  readonly of: string
  readonly connection: DuckDBConnection
  readonly close: () => void
}

export class Workplace {
  readonly folder = mkdtempSync(join(tmpdir(), "acceptance-"))
  readonly output = join(this.folder, "output")
  readonly environment: Record<string, string> = {
    ...plainEnvironment,
    NIGHTJAR_OUTPUT: this.output,
    FAKE_SECRET: "fake-secret-1",
    LOGIN_PASSWORD: "correct horse",
  }

  /** Whether the streams name files from the folder, and not by their whole paths. */
  readonly tellsFromFolder: boolean

  constructor(tellsFromFolder = true) {
    this.tellsFromFolder = tellsFromFolder
  }

  #opened: Opened | undefined

  remove(): void {
    this.close()
    rmSync(this.folder, { recursive: true, force: true })
  }

  write(path: string, text: string): string {
    writeFileSync(join(this.folder, path), text)
    return path
  }

  start(args: ReadonlyArray<string>, environment: Readonly<Record<string, string>> = {}): Running {
    const { folder, tellsFromFolder } = this
    return startHere(args, { environment: { ...this.environment, ...environment }, folder, tellsFromFolder })
  }

  /** In a process of its own: what depends on the folder, the PATH or the name of the process itself. */
  spawned(args: ReadonlyArray<string>, environment: Readonly<Record<string, string>> = {}): Promise<Ended> {
    const child = spawn(process.execPath, [command, ...args], {
      cwd: this.folder,
      env: { ...this.environment, ...environment },
      stdio: ["ignore", "pipe", "pipe"],
    })
    let stdout = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => (stdout += chunk))
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => (stderr += chunk))
    return new Promise<Ended>((resolve) => {
      child.on("close", (code) => resolve({ code, stdout, stderr }))
    })
  }

  nightjar(...args: ReadonlyArray<string>): Promise<Ended> {
    return this.start(args).ended
  }

  async json(...args: ReadonlyArray<string>): Promise<unknown> {
    const { stdout, stderr, code } = await this.nightjar(...args, "--json")
    try {
      return JSON.parse(stdout)
    } catch {
      throw new Error(`exit ${code}, no JSON on stdout: ${stdout}${stderr}`)
    }
  }

  /** Rows of the published database, read as an analyst would: read-only, and opened again once it is another file. */
  async rows(sql: string): Promise<ReadonlyArray<Readonly<Record<string, unknown>>>> {
    const path = join(this.output, "nightjar.duckdb")
    const { ino, mtimeMs } = statSync(path)
    const of = `${ino} ${mtimeMs}`
    if (this.#opened?.of !== of) {
      this.close()
      const instance = await DuckDBInstance.create(path, { access_mode: "READ_ONLY", threads: "1" })
      const connection = await instance.connect()
      const close = () => [connection, instance].forEach((one) => one.closeSync())
      this.#opened = { of, connection, close }
    }
    return (await this.#opened.connection.runAndReadAll(sql)).getRowObjectsJson()
  }

  close(): void {
    this.#opened?.close()
    this.#opened = undefined
  }
}

export interface JobParts {
  readonly name: string
  readonly customers: string
  readonly rest?: string
}

/** A quick job against the fake: everything that may be short is short. */
export const jobText = (fake: FakeService, { name, customers, rest }: JobParts): string => `
name: ${name}
service:
  base_url: ${fake.base_url}
  flows_url: ${fake.flows_url}
  app_secret: env:FAKE_SECRET
concurrency: { max_in_flight: 200, per_engine: 200 }
polling: { min: 100 millis, max: 500 millis }
engines: [fake-bank:website]
record_schemas: []
${
  rest ??
  `execution: { max_wait: 4 seconds }
retry: { max_attempts: 2, base: 100 millis, max: 200 millis }
flow_results: { wait_final: 6 seconds }`
}
${customers}`

export const login = (id: string, username = id): string =>
  `  - { id: "${id}", parameters: { username: "${username}", password: env:LOGIN_PASSWORD } }`

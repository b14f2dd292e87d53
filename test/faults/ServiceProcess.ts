/**
 * The embedded service in a process of its own, so that it outlives every pipeline that is killed, and what really
 * happened there, read from its journal: the campaign believes the service, not the pipeline.
 */
import { existsSync, readFileSync } from "node:fs"
import { Schema } from "effect"
import { SandboxEvent, applyEvent, emptyState } from "../../src/sandbox/state/SandboxState.ts"
import { truthOf, type Truth } from "../../src/sandbox/admin/Truth.ts"
import { newCallWatch } from "../../src/sandbox/core/SandboxCore.ts"
import { startProcess } from "./NightjarCommand.ts"

/** Seconds of the service in one second of this machine: a night of minutes takes one or two. */
export const usualSpeed = 20
const sandboxSeed = 3
/** A service outlives every pipeline of its night: each of them, and the looks at what it left, has its own time. */
const lifeMs = 30 * 60_000

export interface ServiceProcess {
  /** What a pipeline's environment says of it. */
  readonly env: Readonly<Record<string, string>>
  readonly truth: () => Truth
  readonly stop: () => Promise<void>
}

const decodeEvent = Schema.decodeUnknownSync(Schema.fromJsonString(SandboxEvent))
const decodeAddress = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({ base_url: Schema.String, flows_url: Schema.String })),
)

/** Whole lines only: the service may be writing the next one. */
export const readTruth = (journal: string): Truth => {
  const state = emptyState()
  const text = existsSync(journal) ? readFileSync(journal, "utf8") : ""
  for (const line of text.slice(0, text.lastIndexOf("\n") + 1).split("\n"))
    if (line !== "") applyEvent(state, decodeEvent(line))
  return truthOf(state, newCallWatch(0, undefined, 0))
}

export const startService = async (
  command: string,
  journal: string,
  speed = usualSpeed,
): Promise<ServiceProcess> => {
  const argv = [process.execPath, command, "sandbox", "--port", "0", "--seed", String(sandboxSeed)] as const
  const timed = [...argv, "--speed", String(speed), "--state", journal] as const
  const service = startProcess(timed, {}, lifeMs)
  const { base_url, flows_url } = decodeAddress(await service.firstLine)
  return {
    env: { NIGHTJAR_BASE_URL: base_url, NIGHTJAR_FLOWS_URL: flows_url, NIGHTJAR_APP_SECRET: "sandbox-app-1" },
    truth: () => readTruth(journal),
    stop: async () => {
      service.kill()
      await service.ended
    },
  }
}

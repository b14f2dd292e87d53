/**
 * `nightjar sandbox`: the embedded service as a server on this machine, for trying things out and for
 * programs that test against it. Prints one JSON line when it answers, then serves until it is stopped.
 */
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { behaviourWords } from "../../sandbox/executions/Behaviour.ts"
import { faultHelp } from "../../sandbox/faults/FaultHelp.ts"
import { sessionHelp } from "../../sandbox/flows/SessionHelp.ts"
import { readingHelp } from "../../sandbox/readings/ReadingHelp.ts"
import { say } from "../Output.ts"
import { readWebhooks, webhookFlags, webhookHelp } from "../WebhookFlags.ts"
import { Wiring } from "../Wiring.ts"

const words = behaviourWords.map(({ word, meaning }) => `  ${word.padEnd(16)}${meaning}`).join("\n")

export const sandbox = Command.make(
  "sandbox",
  {
    port: Flag.Int("port").pipe(
      Flag.withDescription("Where to listen on 127.0.0.1; 0 takes any free port"),
      Flag.filter(
        (port) => port >= 0 && port <= 65_535,
        () => "a port from 0 to 65535",
      ),
      Flag.withDefault(8_730),
    ),
    host: Flag.String("host").pipe(
      Flag.withDescription("The address to bind; anything but 127.0.0.1 opens the service to others"),
      Flag.withDefault("127.0.0.1"),
    ),
    seed: Flag.Int("seed").pipe(
      Flag.withDescription("The same seed gives the same service"),
      Flag.filter(
        (seed) => seed >= 0,
        () => "a whole number from 0",
      ),
      Flag.withDefault(1),
    ),
    speed: Flag.Finite("speed").pipe(
      Flag.withDescription("Seconds of the service that pass in one second of this machine"),
      Flag.filter(
        (speed) => speed > 0,
        () => "a number above 0",
      ),
      Flag.withDefault(1),
    ),
    state: Flag.String("state").pipe(
      Flag.withMetavar("FILE"),
      Flag.withDescription(
        "A file that keeps executions over restarts (FILE.lock beside it); else all is forgotten",
      ),
      Flag.optional,
    ),
    faults: Flag.String("faults").pipe(
      Flag.withMetavar("FILE"),
      Flag.withDescription("A YAML file of faults to inject, described below"),
      Flag.optional,
    ),
    reading: Flag.String("reading").pipe(
      Flag.withMetavar("FILE"),
      Flag.withDescription("A YAML file of how to read what the reference leaves open, described below"),
      Flag.optional,
    ),
    ...webhookFlags,
  },
  Effect.fn("Sandbox.handle")(function* ({ port, host, seed, speed, state, faults, reading, ...hooks }) {
    const { readFaults } = yield* Effect.promise(() => import("../../sandbox/faults/FaultsFile.ts"))
    const injected = Option.isNone(faults) ? undefined : yield* readFaults(faults.value)
    const { readReading } = yield* Effect.promise(() => import("../../sandbox/readings/ReadingFile.ts"))
    const read = Option.isNone(reading) ? undefined : yield* readReading(reading.value)
    const { SandboxServer } = yield* Effect.promise(() => import("../../sandbox/server/SandboxServer.ts"))
    const wiring = yield* Wiring
    const journal = Option.getOrUndefined(state)
    const webhooks = readWebhooks(hooks)
    const files = { journal, faults: injected, reading: read }
    return yield* Effect.gen(function* () {
      const { base_url, flows_url } = yield* SandboxServer
      yield* say(JSON.stringify({ base_url, flows_url }))
      return yield* Effect.never
    }).pipe(Effect.provide(wiring.sandboxServer({ port, host, seed, speed, webhooks, ...files })))
  }),
).pipe(
  Command.withShortDescription("The embedded service as a server on this machine"),
  Command.withDescription(
    "The embedded service as a server on this machine. Application secrets: sandbox-app-1 and\n" +
      "sandbox-app-3, which may tokenize, and sandbox-app-2, which may not.\n" +
      "What happens to an execution is said in `username`, in words joined by +:\n\n" +
      `${words}\n\nValues may come as rsa:: or hybrid::, see GET {base_url}/sandbox/encryption-key.\n\n` +
      `${sessionHelp}\n\n${webhookHelp}\n\n${faultHelp}\n\n${readingHelp}`,
  ),
  Command.withExamples([
    { command: "nightjar sandbox --port 0 --speed 300", description: "On any free port, 300 times as fast" },
  ]),
)

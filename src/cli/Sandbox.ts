/**
 * `nightjar sandbox`: the embedded service as a server on this machine, for trying things out and for
 * programs that test against it. Prints one JSON line when it answers, then serves until it is stopped.
 */
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { behaviourWords } from "../sandbox/Behaviour.ts"
import { UsageRefused } from "./Failures.ts"
import { say } from "./Output.ts"
import { Wiring } from "./Wiring.ts"

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
      Flag.withDescription("A file that keeps executions over restarts; without it all is forgotten"),
      Flag.optional,
    ),
    faults: Flag.String("faults").pipe(Flag.withMetavar("FILE"), Flag.withHidden, Flag.optional),
  },
  Effect.fn("Sandbox.handle")(function* ({ port, host, seed, speed, state, faults }) {
    if (Option.isSome(faults))
      return yield* new UsageRefused({ message: "--faults is not supported by the embedded service yet" })
    const { SandboxServer } = yield* Effect.promise(() => import("../sandbox/SandboxServer.ts"))
    const wiring = yield* Wiring
    const journal = Option.getOrUndefined(state)
    return yield* Effect.gen(function* () {
      const { base_url, flows_url } = yield* SandboxServer
      yield* say(JSON.stringify({ base_url, flows_url }))
      return yield* Effect.never
    }).pipe(Effect.provide(wiring.sandboxServer({ port, host, seed, speed, journal })))
  }),
).pipe(
  Command.withShortDescription("The embedded service as a server on this machine"),
  Command.withDescription(
    "The embedded service as a server on this machine. Application secrets: sandbox-app-1, sandbox-app-2.\n" +
      "What happens to an execution is said in `username`, in words joined by +:\n\n" +
      words,
  ),
  Command.withExamples([
    { command: "nightjar sandbox --port 0 --speed 300", description: "On any free port, 300 times as fast" },
  ]),
)

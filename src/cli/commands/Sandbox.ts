/**
 * `sandbox`: the embedded service as a server on this machine. Prints one JSON line once it is ready, then
 * serves until it is stopped.
 */
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { deliveryOrders, readTarget } from "../../sandbox/state/HookState.ts"
import { choiceFlag, only, optionalFlag, say, switchFlag } from "../Output.ts"
import { behaviourWords } from "../../sandbox/executions/Behaviour.ts"
import { faultHelp } from "../../sandbox/faults/Faults.ts"
import { sessionHelp } from "../../sandbox/flows/StandingSessions.ts"
import { readingHelp } from "../../sandbox/state/Reading.ts"
import { wrap } from "../../report/TextTable.ts"
import { Wiring } from "../Wiring.ts"
import { readFaults, readReading } from "../../sandbox/readings/SettingFiles.ts"
import { SandboxServer } from "../../sandbox/server/SandboxServer.ts"

// A receiver that copes with late and repeated deliveries here will cope with real ones.

const webhookFlags = {
  webhooks: Flag.String("webhooks").pipe(
    Flag.withMetavar("URL"),
    Flag.withDescription("URL that receives all events of all applications"),
    only((url) => readTarget(url) !== undefined, "an http or https address without a user"),
    Flag.optional,
  ),
  webhooksOrder: choiceFlag("webhooks-order", deliveryOrders, "Order of deliveries"),
  webhooksDuplicates: switchFlag("webhooks-duplicates", "Deliver about half of the events twice"),
}

const webhookHelp = `Events (started, action_required, auth_ended, ended, and four of flow sessions)
go to --webhooks URL and to the URLs that an application subscribes. Execution events: PUT
{"url": …, "events": […], "order": "timely" or "shuffled", "duplicates": true} to /sandbox/hooks,
where only url is required; GET lists, DELETE ?events=… removes. Flow events: GET
{flows_url}/hooks/list, POST create, PATCH update, DELETE delete
{"events": […], "base_url": …, "enabled": true}. A delivery is a POST of JSON. It is
accepted by a whole 2xx answer within 10 real seconds, at any --speed; otherwise it is retried
after 10 seconds and 1, 5, 30 and 120 minutes.
"shuffled" delivers seconds to minutes late, and later events before earlier ones.
x-nightjar-delivery is the same for every attempt, and x-nightjar-attempt counts the attempts.`

const words = behaviourWords.map(({ word, meaning }) => `  ${word.padEnd(16)}${meaning}`).join("\n")

const helpWidth = 80

/** Paragraphs are filled; other long lines wrap to the column where their text begins. */
const fitted = (help: string): string =>
  help
    .replaceAll(/^\S.*(?:\n\S.*)*/gm, (paragraph) => wrap(paragraph.replaceAll("\n", " "), helpWidth))
    .replaceAll(/^ +\S.*/gm, (line) => {
      const [lead = ""] = /^ +(?:\S+(?: \S+){0,2} {2,})?/.exec(line) ?? []
      return line.length <= helpWidth ? line : wrap(line, helpWidth, "", " ".repeat(lead.length))
    })

export const sandbox = Command.make(
  "sandbox",
  {
    port: Flag.Int("port").pipe(
      Flag.withDescription("Port on 127.0.0.1; 0 takes any free port"),
      only((port) => port >= 0 && port <= 65_535, "a port from 0 to 65535"),
      Flag.withDefault(8_730),
    ),
    host: Flag.String("host").pipe(
      Flag.withDescription("Address to bind; only 127.0.0.1 keeps others out"),
      Flag.withDefault("127.0.0.1"),
    ),
    seed: Flag.Int("seed").pipe(
      Flag.withDescription("Same seed, same data (default: --state's, or 1)"),
      only((seed) => seed >= 0, "a whole number from 0"),
      Flag.optional,
    ),
    speed: Flag.Finite("speed").pipe(
      Flag.withDescription("Service seconds per real second, up to 1000000"),
      only((speed) => speed > 0 && speed <= 1_000_000, "a number above 0, up to 1000000"),
      Flag.withDefault(1),
    ),
    state: optionalFlag("state", "FILE", "Keep executions across restarts; locks FILE.lock"),
    faults: optionalFlag("faults", "FILE", "YAML file of faults to inject, described above"),
    reading: optionalFlag("reading", "FILE", "YAML file of readings, described above"),
    ...webhookFlags,
  },
  Effect.fn("Sandbox.handle")(function* ({ port, host, seed, speed, state, faults, reading, ...hooks }) {
    const injected = Option.isNone(faults) ? undefined : yield* readFaults(faults.value)
    const read = Option.isNone(reading) ? undefined : yield* readReading(reading.value)
    const wiring = yield* Wiring
    const journal = Option.getOrUndefined(state)
    const seeded = { seed: Option.getOrUndefined(seed), keepsSeed: true }
    const { webhooksOrder: order, webhooksDuplicates: duplicates } = hooks
    const webhooks = Option.isNone(hooks.webhooks) ? [] : [{ url: hooks.webhooks.value, order, duplicates }]
    const files = { journal, faults: injected, reading: read }
    return yield* Effect.gen(function* () {
      const { base_url, flows_url } = yield* SandboxServer
      yield* say(JSON.stringify({ base_url, flows_url }))
      return yield* Effect.never
    }).pipe(Effect.provide(wiring.sandboxServer({ port, host, speed, webhooks, ...seeded, ...files })))
  }),
).pipe(
  Command.withDescription(
    "\n\nApplication secrets: sandbox-app-1 and sandbox-app-3, which may tokenize, " +
      "and\nsandbox-app-2, which may not.\n" +
      "`username` decides what happens to an execution, with words joined by +:\n\n" +
      fitted(
        `${words}\n\nValues may be rsa:: or hybrid::, see GET {base_url}/sandbox/encryption-key.\n\n` +
          `${sessionHelp}\n\n${webhookHelp}\n\n${faultHelp}\n\n${readingHelp}`,
      ),
  ),
  Command.withExamples([
    { command: "nightjar sandbox --port 0 --speed 300", description: "On any free port, 300 times as fast" },
  ]),
)

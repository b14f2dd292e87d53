/**
 * The command `nightjar` with everything below it, in the order in which a newcomer meets it, and the flags
 * that all of it shares.
 */
import { CliConfig, Command, GlobalFlag } from "effect/cli"
import { acquaint } from "./commands/Acquaint.ts"
import { NoProgressFlag, OutputFlag } from "./CommonFlags.ts"
import { credentials } from "./commands/Credentials.ts"
import { demo } from "./commands/Demo.ts"
import { doctor } from "./commands/Doctor.ts"
import { engines } from "./commands/Engines.ts"
import { explain } from "./commands/Explain.ts"
import { init } from "./commands/Init.ts"
import { plan } from "./commands/Plan.ts"
import { repair } from "./commands/Repair.ts"
import { query } from "./commands/Query.ts"
import { rerun } from "./commands/Rerun.ts"
import { run } from "./commands/Run.ts"
import { sandbox } from "./commands/Sandbox.ts"
import { runs } from "./commands/Runs.ts"
import { status } from "./commands/Status.ts"
import { tables } from "./commands/Tables.ts"
import { tokens } from "./commands/Tokens.ts"
import { validate } from "./commands/Validate.ts"
import { verify } from "./commands/Verify.ts"

export const nightjar = Command.make("nightjar").pipe(
  Command.withDescription(
    "Pulls data from a credential-based extraction service every night, into DuckDB\n" +
      "and Parquet tables.",
  ),
  Command.withSubcommands([
    demo,
    init,
    validate,
    doctor,
    plan,
    run,
    rerun,
    status,
    runs,
    explain,
    query,
    tables,
    verify,
    repair,
    credentials,
    tokens,
    engines,
    sandbox,
    acquaint,
  ]),
  Command.withGlobalFlags([OutputFlag, NoProgressFlag]),
)

/** The flags of its own that this command line has; no wizard: a night has nobody to ask. */
export const NightjarFlags = {
  layer: CliConfig.layer({
    builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions, GlobalFlag.LogLevel],
  }),
}

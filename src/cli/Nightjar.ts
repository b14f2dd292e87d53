/**
 * The command `nightjar` with everything below it, in the order in which a newcomer meets it, and the flags
 * that all of it shares.
 */
import { Command } from "effect/cli"
import { acquaint } from "./Acquaint.ts"
import { NoProgressFlag, OutputFlag } from "./CommonFlags.ts"
import { credentials } from "./Credentials.ts"
import { demo } from "./Demo.ts"
import { doctor } from "./Doctor.ts"
import { engines } from "./Engines.ts"
import { explain } from "./Explain.ts"
import { init } from "./Init.ts"
import { plan } from "./Plan.ts"
import { repair } from "./Repair.ts"
import { query } from "./Query.ts"
import { rerun } from "./Rerun.ts"
import { run } from "./Run.ts"
import { sandbox } from "./Sandbox.ts"
import { runs, status } from "./Status.ts"
import { tables } from "./Tables.ts"
import { tokens } from "./Tokens.ts"
import { validate } from "./Validate.ts"
import { verify } from "./Verify.ts"

export const nightjar = Command.make("nightjar").pipe(
  Command.withDescription(
    "Pulls data from a credential-based extraction service, night after night, " +
      "into DuckDB and Parquet tables.",
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

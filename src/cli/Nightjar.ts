/**
 * The command `nightjar` with all its subcommands, in the order in which a newcomer meets them, and the
 * flags they all share.
 */
import { CliConfig, Command, GlobalFlag } from "effect/cli"
import { accept } from "./commands/Accept.ts"
import { acquaint } from "./commands/Acquaint.ts"
import { backup } from "./commands/Backup.ts"
import { EnvFileFlag, NoProgressFlag, OutputFlag } from "./CommonFlags.ts"
import { documents } from "./commands/Documents.ts"
import { compact } from "./commands/Compact.ts"
import { credentials } from "./commands/Credentials.ts"
import { demo } from "./commands/Demo.ts"
import { doctor } from "./commands/Doctor.ts"
import { engines } from "./commands/Engines.ts"
import { explain } from "./commands/Explain.ts"
import { help } from "./commands/Help.ts"
import { hooks } from "./commands/Hooks.ts"
import { infer } from "./commands/Infer.ts"
import { init } from "./commands/Init.ts"
import { forget } from "./commands/Forget.ts"
import { limit } from "./commands/Limit.ts"
import { notify } from "./commands/Notify.ts"
import { plan } from "./commands/Plan.ts"
import { pseudonyms } from "./commands/Pseudonyms.ts"
import { rebuild } from "./commands/Rebuild.ts"
import { repair } from "./commands/Repair.ts"
import { prune } from "./commands/Prune.ts"
import { drain, pause, resume } from "./commands/Steer.ts"
import { query } from "./commands/Query.ts"
import { report } from "./commands/Report.ts"
import { rerun } from "./commands/Rerun.ts"
import { rollback } from "./commands/Rollback.ts"
import { run } from "./commands/Run.ts"
import { sandbox } from "./commands/Sandbox.ts"
import { schedule } from "./commands/Schedule.ts"
import { runs } from "./commands/Runs.ts"
import { status } from "./commands/Status.ts"
import { tables } from "./commands/Tables.ts"
import { tokens } from "./commands/Tokens.ts"
import { validate } from "./commands/Validate.ts"
import { verify } from "./commands/Verify.ts"

export const nightjar = Command.make("nightjar").pipe(
  Command.withDescription(
    "Pulls data from a credential-based extraction service into DuckDB and Parquet\n" + "tables every night.",
  ),
  Command.withSubcommands([
    demo,
    help,
    init,
    validate,
    doctor,
    plan,
    run,
    rerun,
    accept,
    schedule,
    notify,
    status,
    runs,
    pause,
    resume,
    drain,
    limit,
    explain,
    report,
    query,
    tables,
    documents,
    pseudonyms,
    infer,
    verify,
    repair,
    rebuild,
    rollback,
    backup,
    prune,
    compact,
    forget,
    credentials,
    tokens,
    hooks,
    engines,
    sandbox,
    acquaint,
  ]),
  Command.withGlobalFlags([OutputFlag, EnvFileFlag, NoProgressFlag]),
)

/** The built-in flags of this command line; no wizard: nobody can answer it at night. */
export const NightjarFlags = {
  layer: CliConfig.layer({
    builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions, GlobalFlag.LogLevel],
  }),
}

/**
 * What `verify`, `repair` and `doctor` report: where files, ledger and tables disagree, and what would stop
 * a run. Reporting changes nothing.
 */
import { finding } from "./Message.ts"

const repair = "Run `nightjar repair`: it derives the tables from landing again."
const restore = "Restore a copy of it: it exists nowhere else."
const nextRun = "The next publication corrects it, and so does `nightjar repair`."
const sameText =
  "`nightjar repair` writes it again if the program or a job that ran here has the same text. Otherwise " +
  "restore a copy, or `nightjar rebuild --job FILE` derives all tables with the schemas of today."
const report = "Keep the folder as it is and compare it with the service: this should never happen."

export const findingMessages = {
  "marker-damaged": finding(
    "the marker file was changed",
    "The next run writes it again, and so does `nightjar repair`.",
  ),
  "facts-damaged": finding(
    "the ledger is damaged: {detail}",
    "Restore a copy of it, with `ledger-archive/` if there is one: it exists nowhere else.",
  ),
  "landing-unreadable": finding("landed data cannot be read: {detail}", restore),
  "document-missing": finding("the document is missing", restore),
  "document-changed": finding("the document has changed since it was downloaded", restore),
  "run-not-in-manifest": finding("published, but not in the manifest", repair),
  "run-not-in-ledger": finding(
    "published, but not in the ledger",
    "Restore the copy of ledger.sqlite that belongs to these tables.",
  ),
  "table-without-schema": finding(
    "published, but its record schema is gone: its rows are not in the database",
    "Put its file back into the job's folder and run `nightjar rebuild --job FILE`, unless `nightjar " +
      "repair` finds it.",
  ),
  "schema-missing": finding("the kept record schema is missing", sameText),
  "schema-changed": finding("the kept record schema has changed since it was written", sameText),
  "manifest-lost": finding("the manifest is missing or cannot be read", repair),
  "newest-version-lost": finding("version {version}, which a rollback replaced, is missing", repair),
  "receipt-missing": finding("deleted without a receipt", report),
  "receipt-mismatch": finding("the receipt of its deletion does not match the landed bodies", report),
  "deleted-unproved": finding("deleted, but landing does not contain all of it: {missing}", report),
  "proof-mismatch": finding("landing contains fewer records than the proof of its deletion", report),
  "publication-interrupted": finding("a publication was interrupted", nextRun),
  "file-differs": finding("a published file is {state}", repair),
  "helper-damaged": finding(
    "a database that is kept to save work is damaged",
    "No table depends on it. Run `nightjar repair`: it makes it again, or removes it if it is not needed.",
  ),
  "delta-log-differs": finding("the Delta log does not match the manifest", nextRun),
  "file-unlisted": finding("no manifest lists this file", nextRun),
  "database-version": finding("the database {state}, the manifest is version {version}", repair),
  "database-changed": finding("the database is not the file that was published", repair),
  "database-unreadable": finding("the database cannot be read: {detail}", repair),
  "rows-differ": finding("{rows} of run {run_id} in the database, {expected} in its files", repair),
  "execution-not-in-tables": finding("missing from the table {table}", repair),
  "forget-unfinished": finding(
    "the removal of a customer was interrupted",
    "Run the same `nightjar forget` again: it finishes it.",
  ),
  "node-too-old": finding("{version}; version 22.19 or newer is needed", "Install a newer Node.js."),
  "zone-unknown": finding(
    "the variable TZ names no known time zone, so times are in UTC",
    "Correct TZ, such as TZ=Europe/Madrid, or set `timezone` in each job.",
  ),
  "output-closed": finding(
    "this user cannot write to {output}",
    "Correct its permissions, or give --output another folder.",
  ),
  "output-foreign": finding(
    "the folder cannot be used: {detail}",
    "Give --output a folder that is empty or does not exist yet.",
  ),
  "output-open-to-others": finding(
    "{output} has mode {mode}: other users can read it",
    "No action needed: the next run closes it.",
  ),
  "space-low": finding(
    "{space} free, which may be too little for a run",
    "Free some space before the next run.",
  ),
  "space-for-nights": finding(
    "{space} free: room for {nights} like the last ones",
    "Free some space, or move the output folder to a larger disk.",
  ),
  "files-open-to-others": finding(
    "other users can read private files in {output}: {names}",
    "Close them: `chmod -R go= FILE` for each of them.",
  ),
  "runs-left-open": finding(
    "{runs} left something at the service; the oldest is {oldest}",
    "Run the job again with `nightjar run JOB`: it collects and deletes what older runs left.",
  ),
  "clock-differs": finding(
    "this machine's clock is {seconds} {way} the service's",
    "Set the clock (`timedatectl set-ntp true`): nights, deadlines and the expiry of tokens depend on it.",
  ),
  "hooks-disabled": finding(
    "subscribed at the service, but switched off: {events}",
    "`nightjar hooks subscribe JOB URL` switches them on again.",
  ),
  "ledger-absent": finding(
    "the ledger of {output} is missing, but the folder contains {found}",
    "Restore a copy of ledger.sqlite, or start with an empty folder.",
  ),
  "ledger-unreadable": finding("the ledger cannot be read: {detail}", "Restore a copy of ledger.sqlite."),
  "folder-disagrees": finding("{where}: {problem}{more}", "`nightjar verify` lists all of them."),
  "folder-unchecked": finding(
    "{output} cannot be checked: {why}",
    "Correct what the other lines report, then run `nightjar doctor` again.",
  ),
  "secrets-unavailable": finding(
    "secrets are not available: {detail}",
    "Set each secret where its reference points.",
  ),
  "alarms-unresolved": finding(
    "an alarm would not arrive: {detail}",
    "Set each variable, file or command that a reference names. `nightjar notify test JOB` then tells each.",
  ),
  "store-closed": finding("the token store cannot be opened: {detail}", "Check `tokens.key` of the job."),
  "tokens-ending": finding(
    "{tokens} of this service, {ending} expiring within 14 days",
    "Ask the customers to sign in again, then run `nightjar tokens exchange`.",
  ),
  "canary-found": finding(
    "secrets leaked in a test night: {findings}{more}",
    "Do not run a night with this installation. Install it again or use another version, and report this.",
  ),
  "canary-blind": finding(
    "the search missed a text that it has to find, so it is not known whether secrets leak",
    "Report this finding: the check itself does not work with this version.",
  ),
  "canary-unfinished": finding(
    "the test night did not finish: {detail}",
    "Correct what the other lines report, free space in the folder for temporary files, then try again.",
  ),
  "service-unusable": finding(
    "the service cannot be used: {detail}",
    "Check the address, the secret and the network.",
  ),
} as const

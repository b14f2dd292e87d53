/**
 * What is said of a folder: what commands on its tables, documents and customers refuse, and what `verify`,
 * `repair` and `doctor` report. Reporting changes nothing.
 */
import { finding, nothing, refusal, stopped, warning } from "./Message.ts"

const repair = "Run `nightjar repair`; copy what it cannot restore from a backup."
const readOrRestore =
  "If its execution is not deleted at the service yet, `nightjar run` reads it again. Otherwise restore a " +
  "copy of it: it exists nowhere else."
const nextRun = "The next publication corrects it, and so does `nightjar repair`."
const sameText =
  "`nightjar repair` writes it again if the program or a job that ran here has the same text. Otherwise " +
  "restore a copy, or `nightjar rebuild --job FILE` derives all tables with the schemas of today."
const report =
  "Leave the folder as it is, compare it with the service and report this: it should never happen."
const nothingDone = "Nothing was started, and the tables are as they were."

const nothingRenamed = "Nothing was renamed."

export const findingMessages = {
  // Of the Parquet files of past months.
  "compact-rolled-back": nothing.published(
    "an earlier version of the tables is current, because of a rollback",
    "Run the command again after the next publication, by `nightjar run JOB` or `nightjar rebuild`.",
  ),
  "compact-failed": warning(
    "not all Parquet files of past months were combined: {why}",
    "The next run tries again, and so does `nightjar compact`; `nightjar verify` names damaged files.",
    "No row was changed.",
  ),

  // Of documents that get their names for people.
  "documents-not-ours": nothing.changed(
    "{path} was not made by nightjar: it contains {entries}",
    "Move what is in it elsewhere, so that the folder is empty or gone; then run the command again.",
  ),
  "documents-stopped": stopped(
    "documents could not be copied to `documents/`: {why}",
    "Check the permissions and the free space of the output folder; then run the command again.",
    "Every document is in `attachments/`, and the copies that were made stay.",
  ),
  "documents-unnamed": warning(
    "not all new documents were copied to `documents/`: {why}",
    "The next run tries again, and so does `nightjar documents`.",
    "Every document is in `attachments/`; the run and its exit code are not affected.",
  ),

  // Of `nightjar forget`: also where a customer's name stays because it is not Nightjar's to remove.
  "customer-unknown": nothing.removed(
    "there is nothing about this customer in {output}",
    "Check that the id is exactly as in the job. --output names another folder.",
  ),
  "forget-unconfirmed": nothing.removed(
    "the removal was not confirmed, and it cannot be undone",
    "Add --yes, or --dry-run to see what would be removed.",
  ),
  "forget-other": nothing.removed(
    "the removal of another customer was interrupted",
    "First run the interrupted `nightjar forget` again, then this one.",
  ),
  "forget-job-needed": nothing.removed(
    "this customer has {left} at the service, and the job file of {jobs} was not found",
    "Give --job FILE, so that they are deleted there first, or --here-only to leave them at the service.",
  ),
  "forget-pending": stopped(
    "this customer still has {left} at the service: still running, not answered, or not found there",
    "Run the command again later, with the former `base_url` (`NIGHTJAR_BASE_URL`) where that was changed; " +
      "or with --here-only to leave them at the service.",
    "Nothing was removed here yet; what the service deleted is recorded.",
  ),
  "forget-stopped": stopped(
    "the removal stopped: {why}",
    "Run `nightjar verify`, correct what it names, then run the same command again: it finishes the removal.",
    "The tables can be read, and what was removed stays removed.",
  ),
  "customer-still-in-job": warning(
    "{path} still names this customer",
    "Remove the customer from the job. Otherwise its next run starts the customer again, as a new one.",
    "The job file was not changed.",
  ),
  "customer-in-job-name": warning(
    "the customer's id is part of the job name `{name}`, and so of the ids of its runs",
    "Rename the job. Its earlier runs keep their ids: if those must go too, delete this output folder.",
    nothingRenamed,
  ),
  "customer-in-job-path": warning(
    "the customer's id is part of {path}, which the ledger names",
    "Rename it for later runs. Earlier runs keep the path: if it must go too, delete this output folder.",
    nothingRenamed,
  ),
  "customer-in-folder-name": warning(
    "the customer's id is part of the path of the output folder, {path}",
    "Rename the folder once the command has ended, and give --output its new name.",
    nothingRenamed,
  ),
  "customer-in-model": warning(
    "the SQL of the model `{name}` of the job `{job}` names the customer",
    "Change the file and run the job: its publication replaces the copy in this folder.",
    "The model was not changed.",
  ),

  // Of pseudonyms in the published tables.
  "pseudonyms-refused": refusal(
    "the pseudonyms of the job do not fit this output folder: {detail}",
    "Make `pseudonyms` the same in all jobs of this output folder, with the key that the tables have. " +
      "Or derive all tables again with those of one job: `nightjar rebuild --job FILE`.",
    nothingDone,
  ),
  "pseudonyms-key-unknown": refusal(
    "the tables have pseudonyms, and pseudonyms.json does not say where their key is",
    "Run a job of this folder once, which writes the file, or choose another key: " +
      "`nightjar rebuild --job FILE`.",
    nothingDone,
  ),
  "pseudonyms-none": nothing.changed(
    "the published tables in {output} have no pseudonyms",
    "Add `pseudonyms` to the job, then `nightjar rebuild --job FILE`.",
  ),
  "pseudonym-unknown": nothing.changed(
    "the ledger knows no customer with this id or pseudonym",
    "Without an argument the command lists all customers.",
  ),
  "records-withheld": nothing.changed(
    "the tables have pseudonyms, so records without a schema are not published",
    "Draft the schema in another output folder, from a run with one customer and without `pseudonyms`.",
  ),
  "runs-not-derivable": refusal(
    "{runs} cannot be derived again, and rows with different pseudonyms cannot be in the same tables",
    "Restore their landed bodies. To drop their rows, run `nightjar backup DIR` and add --leave-out.",
    "Nothing was published, and the tables are as they were.",
  ),

  // Of `verify`, `repair` and `doctor`.
  "marker-damaged": finding(
    "the marker file was changed",
    "The next run writes it again, and so does `nightjar repair`.",
  ),
  "facts-damaged": finding(
    "the ledger is damaged: {detail}",
    "Restore a copy of it, with `ledger-archive/` if there is one: it exists nowhere else.",
  ),
  "landing-unreadable": finding("landed data cannot be read: {detail}", readOrRestore),
  "document-missing": finding("the document is missing", readOrRestore),
  "document-changed": finding("the document has changed since it was downloaded", readOrRestore),
  "run-not-in-manifest": finding("published, but not in the manifest", repair),
  "run-not-in-ledger": finding(
    "published or landed, but not in the ledger",
    "Restore the newer ledger.sqlite. Without a copy of it, `nightjar explain ledger-older` says how to " +
      "go on.",
  ),
  "table-without-schema": finding(
    "published, but its record schema is gone: its rows are not in the database",
    "Put its file back into the job's folder and run `nightjar rebuild --job FILE`, unless `nightjar " +
      "repair` finds it.",
  ),
  "schema-missing": finding("the kept record schema is missing", sameText),
  "schema-changed": finding("the kept record schema has changed since it was written", sameText),
  "preview-impossible": nothing.published(
    "what would change cannot be shown yet: {why}",
    "Run `nightjar repair`, which corrects it, and then this command again.",
  ),
  "manifest-lost": finding("the manifest is missing or cannot be read", repair),
  "newest-version-lost": finding("version {version}, which a rollback replaced, is missing", repair),
  "receipt-missing": finding("deleted without a receipt", report),
  "receipt-mismatch": finding("the receipt of its deletion does not match the landed bodies", report),
  "deleted-unproved": finding("deleted, but landing does not contain all of it: {missing}", report),
  "proof-mismatch": finding("landing contains fewer records than the proof of its deletion", report),
  "publication-interrupted": finding(
    "a publication was interrupted; the next run finishes it, or removes what it left",
    "`nightjar repair` does the same at once, without a run.",
  ),
  "file-differs": finding("a published file is {state}", repair),
  "helper-damaged": finding(
    "a database that only saves work is damaged",
    "Run `nightjar repair`, which removes it. No table depends on it.",
  ),
  "parquet-lost": finding(
    "the folder with what is current as Parquet is not there",
    "Run `nightjar repair`, which writes it again. The database does not depend on it.",
  ),
  "parquet-elsewhere": finding(
    "something else has this name, so the published Parquet files are not here, but in `published/parquet/`",
    "Move it elsewhere, and run `nightjar repair`, which puts them here.",
  ),
  "parquet-differs": finding(
    "a published file is {state}",
    "Run `nightjar repair`, which writes all of `current/` and `history/` again from the database.",
  ),
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
    "Run the job again with `nightjar run JOB`, or one that `replaces` it: that collects and deletes what " +
      "older runs left.",
  ),
  "runs-keep-executions": finding(
    "{executions} kept at the service, as records or documents may be missing; the newest in {newest}",
    "Each run of the job reads them again; `nightjar status RUN` names those that stay: report them.",
  ),
  "runs-ahead": finding(
    "{runs} began in the future, by this machine's clock; the latest is {latest}",
    "Set the clock if it is wrong now (`timedatectl set-ntp true`). If it was wrong then, what " +
      "changed since has the date of that run in `valid_from` and `valid_to`; the values are right. " +
      "`nightjar rebuild` corrects the dates, once as many runs have begun with the right time as with the " +
      "wrong one.",
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
    "Set each variable, file or command that a reference names, then try it with `nightjar notify test JOB`.",
  ),
  "store-closed": finding("the token store cannot be opened: {detail}", "Check `tokens.key` of the job."),
  "tokens-ending": finding(
    "{tokens} of this service, {ending} expired or expiring within 14 days",
    "Ask the customers to sign in again, then run `nightjar tokens exchange`.",
  ),
  "canary-found": finding(
    "secrets leaked in a test run: {findings}{more}",
    "Do not run any job with this installation. Install it again or use another version, and report this.",
  ),
  "canary-blind": finding(
    "the check missed a text that it must find, so it cannot tell whether secrets leak",
    "Report this finding: the check itself does not work with this version.",
  ),
  "canary-unfinished": finding(
    "the test run did not finish: {detail}",
    "Correct what the other lines report, free space in the folder for temporary files, then try again.",
  ),
  "service-unusable": finding(
    "the service cannot be used: {detail}",
    "Check the address, the secret and the network.",
  ),
} as const

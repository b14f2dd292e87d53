/**
 * What is said about pseudonyms in the published tables: why a job may not publish beside them, and what a
 * command that has no job lacks (exit code 2).
 */
import { refusal } from "./Message.ts"

const nothingDone = "Nothing was started, and the tables are as they were."

export const pseudonymMessages = {
  "pseudonyms-refused": refusal(
    "the pseudonyms of the job do not fit this output folder: {detail}",
    "Make `pseudonyms` the same in all jobs of this output folder, with the key that the tables have. " +
      "Or derive all tables again with those of one job: `nightjar rebuild --job FILE`.",
    nothingDone,
  ),
  "pseudonyms-key-unknown": refusal(
    "the tables have pseudonyms, and pseudonyms.json does not say where their key is",
    "Run a job of this folder once: it writes the file. Or `nightjar rebuild --job FILE`, with another key.",
    nothingDone,
  ),
  "pseudonyms-none": refusal(
    "the published tables in {output} have no pseudonyms",
    "Add `pseudonyms` to the job, then `nightjar rebuild --job FILE`.",
    "Nothing was changed.",
  ),
  "pseudonym-unknown": refusal(
    "the ledger knows no customer with this id or pseudonym",
    "Without an argument the command lists all customers.",
    "Nothing was changed.",
  ),
  "records-withheld": refusal(
    "the tables have pseudonyms, so that records without a schema are withheld from them",
    "Draft the schema in another output folder, from a run with one customer and without `pseudonyms`.",
    "Nothing was changed.",
  ),
  "runs-not-derivable": refusal(
    "{runs} cannot be derived again, and their rows must not stay beside rows with other pseudonyms",
    "Restore their landed bodies, or give up their rows: --leave-out, after `nightjar backup DIR`.",
    "Nothing was published, and the tables are as they were.",
  ),
} as const

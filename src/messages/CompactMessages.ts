/**
 * What is said when the Parquet files of a month are not put together: the command is refused (exit code 2),
 * and a night is warned.
 */
import { refusal, warning } from "./Message.ts"

export const compactMessages = {
  "compact-rolled-back": refusal(
    "a rollback has put an earlier version of the tables back",
    "Run the command again after the next publication, by `nightjar run JOB` or `nightjar rebuild`.",
    "The tables were not changed.",
  ),
  "compact-failed": warning(
    "not all Parquet files of past months were combined: {why}",
    "The next run tries again, and so does `nightjar compact`; `nightjar verify` names damaged files.",
    "No row was changed.",
  ),
} as const

/**
 * What is said when documents cannot get their names for people: the command is refused (exit code 2) or
 * stopped (exit code 4), and a night is warned.
 */
import { refusal, stopped, warning } from "./Message.ts"

export const documentMessages = {
  "documents-not-ours": refusal(
    "{path} was not made by nightjar: it contains {entries}",
    "Move what is in it elsewhere, so that the folder is empty or gone; then run the command again.",
    "Nothing was changed.",
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
} as const

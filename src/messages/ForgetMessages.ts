/**
 * What `nightjar forget` says: why it removes nothing (exit code 2), why it stopped (exit code 4), and where
 * a customer's name stays because it is not Nightjar's to remove.
 */
import { refusal, stopped, warning } from "./Message.ts"

const nothingRenamed = "Nothing was renamed."

export const forgetMessages = {
  "customer-unknown": refusal(
    "there is nothing about this customer in {output}",
    "Check the id: it is compared whole, as the job writes it. --output names another folder.",
    "Nothing was removed.",
  ),
  "forget-unconfirmed": refusal(
    "the removal was not confirmed, and it cannot be undone",
    "Add --yes, or --dry-run to see what would be removed.",
    "Nothing was removed.",
  ),
  "forget-other": refusal(
    "the removal of another customer was interrupted",
    "Run the `nightjar forget` that was interrupted again, then this one.",
    "Nothing was removed.",
  ),
  "forget-job-needed": refusal(
    "this customer has {left} at the service, and the job file of {jobs} was not found",
    "Give --job FILE, so that they are deleted there first, or --here-only to leave them at the service.",
    "Nothing was removed.",
  ),
  "forget-pending": stopped(
    "this customer still has {left} at the service: still running, or the service did not answer",
    "Run the command again later, or with --here-only to leave them at the service.",
    "Nothing was removed here yet; what the service deleted is recorded.",
  ),
  "forget-stopped": stopped(
    "the removal stopped: {why}",
    "Run `nightjar verify`, correct what it names, then run the same command again: it finishes the removal.",
    "The tables can be read, and what was removed stays removed.",
  ),
  "customer-still-in-job": warning(
    "{path} still names this customer",
    "Remove the customer from the job: its next run starts the customer again, as if it were new.",
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
} as const

/**
 * What is told of a job's files, of its receivers before anything starts, and of several jobs that are given
 * together: a file that was named twice, a job whose turn came too late.
 */
import { refusal, stopped, warning } from "./Message.ts"

export const jobMessages = {
  "job-invalid": refusal(
    "{problems} in the job files",
    "Correct the job files. `nightjar validate` checks them offline, `nightjar plan` with their secrets.",
  ),
  "customers-missing": refusal(
    "the job names {customers}; `min_customers` requires {share} of the {before} in {run_id}",
    "Check the customers of the job. If they are right, lower `of_last_night` for one run.",
  ),
  "job-name-taken": refusal(
    "{path} and {other} both define the job `{name}`",
    "Rename one of them: a job's name is the first part of its run ids.",
  ),
  "job-name-invalid": refusal(
    "a job's name may contain a-z, 0-9 and hyphens, at most 64 characters",
    "Give another name.",
    "Nothing was written.",
  ),
  "job-file-exists": refusal("{path} already exists", "Give another name.", "The file was not changed."),
  "job-file-unwritable": refusal(
    "{path} cannot be written ({why})",
    "Check the folder's permissions and its free space.",
    "Nothing was written.",
  ),
  "job-moved": refusal(
    "{path} no longer defines the job `{name}`",
    "Restore the job to that file, or start it with `nightjar run JOB`.",
  ),
  "job-file-gone": refusal(
    "{path}, the job file of {run_id}, does not exist",
    "Give --job FILE: where it is now. A path that is not absolute is relative to the current folder.",
  ),
  "faults-invalid": refusal(
    "{problems} in the faults file",
    "Correct the file. `nightjar sandbox --help` describes its keys.",
  ),
  "reading-invalid": refusal(
    "{problems} in the reading file",
    "Correct the file. `nightjar sandbox --help` lists its keys.",
  ),
  "record-schema-invalid": refusal("{problems} in the record schemas", "Correct the record schema."),
  "job-given-twice": warning(
    "the job file {first} is given more than once",
    "Name each job file once.",
    "It is used once.",
  ),
  "job-turn-late": stopped(
    "the job `{job}` waited for {others} until its own deadline",
    "Run it now with `nightjar run JOB`, or start the night earlier. `nightjar plan JOB…` says which " +
      "jobs wait for each other, and why.",
    "Nothing of this job was started.",
  ),
  "alarms-unreachable": refusal(
    "{problems} in `notify` and `telemetry` of the job files: an alarm would not arrive",
    "Set each variable, file or command that a reference names, or remove the receiver; " +
      "`nightjar notify test JOB` then tells each one.",
  ),
  "receivers-absent": refusal(
    "the job {path} has no `notify`, so nobody is told of it",
    "Name a receiver in `notify` of the job: an address, an e-mail, a ping or a command.",
    "Nothing was sent.",
  ),
} as const

/**
 * What is told of several jobs that are given together, a file that was named twice, and a job whose turn
 * came too late; and of a job's receivers, before anything starts.
 */
import { refusal, stopped, warning } from "./Message.ts"

export const jobMessages = {
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

/**
 * What is told of several jobs that are given together: a file that was named twice, and a job whose turn
 * came too late.
 */
import { stopped, warning } from "./Message.ts"

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
} as const

/**
 * Errors of `nightjar schedule` (exit code 2): a timer that would fail every night is not written, and
 * nothing that somebody else wrote is replaced.
 */
import { refusal, warning } from "./Message.ts"

const nothingWritten = "Nothing was written."

export const timerMessages = {
  "timer-kind-missing": refusal(
    "no kind of timer was given, or more than one",
    "Give one of --systemd, --cron and --kubernetes.",
    nothingWritten,
  ),
  "timer-time-missing": refusal(
    "the job `{name}` does not say when it runs",
    'Add `night: { starts: "22:30", until: "07:00" }` to the job, or give --at HH:MM.',
    nothingWritten,
  ),
  "timer-time-twice": refusal(
    "the job `{name}` starts at {starts}, as its `night` says, and --at gives another time",
    "Leave --at out, or change the `night` of the job.",
    nothingWritten,
  ),
  "timer-nights-differ": refusal(
    "the jobs `{name}` and `{other}` do not run at the same times",
    "Give each of them a timer of its own: a start that finds the folder in use waits for it.",
    nothingWritten,
  ),
  "timer-name-long": refusal(
    "the timer of {jobs} would have a name of more than {charactersMax} characters",
    "Give the timer fewer jobs, or the jobs shorter names.",
    nothingWritten,
  ),
  "timer-text-unwritable": refusal(
    "no timer can hold {text}: it has a control character, or a space or backslash at its end",
    "Rename the file or folder, or correct the variable that names it.",
    nothingWritten,
  ),
  "timer-variables-missing": refusal(
    "{file} lacks variables that the job needs: {names}",
    "Add a line NAME=value for each of them: a timer does not have the variables of your shell.",
    nothingWritten,
  ),
  "timer-file-outside": refusal(
    "{path} is outside the job's folder, and a CronJob mounts only that folder",
    "Move it into the folder, and name it in the job relative to the job file.",
    nothingWritten,
  ),
  "timer-not-installable": refusal(
    "a CronJob is not installed from here",
    "Leave --install out, and pass what is printed to `kubectl apply -f -`.",
    nothingWritten,
  ),
  "timer-not-ours": refusal(
    "{path} was not written by nightjar",
    "Move that file away, or write the timer by hand from what is printed without --install.",
    nothingWritten,
  ),
  "timer-lines-damaged": refusal(
    "the lines of the job `{name}` in the crontab have no end mark",
    "Correct them with `crontab -e`: delete them, or restore the line that ends with `: end`.",
    "The crontab was not changed.",
  ),
  "timer-unwritable": refusal(
    "{path} cannot be written ({why})",
    "Check the folder's permissions and its free space.",
    "The timer is not installed.",
  ),
  "timer-not-enabled": refusal(
    "the command `{command}` did not succeed ({why})",
    "Run it yourself in a session of the user whose timer it is. Without systemd, use --cron.",
    "The units were written and are not enabled.",
  ),
  "crontab-unusable": refusal(
    "the command `{command}` did not succeed ({why})",
    "Run the command yourself to see why; where there is no cron, use --systemd.",
    "The crontab was not changed.",
  ),
  "timer-environment": warning(
    "the job was read with the variables of {file} only, since a timer has none of this shell's",
    "Write those that the job needs into that file, a line NAME=value for each, and run `chmod 600` on it.",
    nothingWritten,
  ),
} as const

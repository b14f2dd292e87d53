/**
 * The lines of a timer for cron, and a crontab with these lines in it: pure. cron knows one zone, the
 * machine's, and no exit codes: what a line prints is mailed. So a run that needs nobody prints nothing.
 */
import { shellWord } from "../base/ShellWord.ts"
import { argumentsOf, cronFields, runsText, timerName, timesElsewhere } from "./Timer.ts"
import type { Timer } from "./Timer.ts"

const beginning = (name: string): string => `# nightjar ${name}: begin (written by \`nightjar schedule\`)`
const end = (name: string): string => `# nightjar ${name}: end`

/** What a run prints, beside the output folder: that one may not exist yet. */
export const logOf = ({ output }: Pick<Timer, "output">): string => `${output}.log`

/** Several times where the zones of job and machine change their clocks on different days. */
const cronTimes = ({ times, timezone, machine_zone }: Timer, now: number): ReadonlyArray<string> =>
  timezone === undefined || timezone === machine_zone
    ? times
    : times.flatMap((time) => timesElsewhere(time, { from: timezone, to: machine_zone, now }))

/** An exit code of 3 is no failure; a `%` would end the command. */
const commandOf = (timer: Timer): string => {
  const { command, env_file, folder, path } = timer
  const words = [...command, ...argumentsOf(timer, env_file)].map(shellWord)
  const log = shellWord(logOf(timer))
  const failed = `echo "nightjar: ${runsText(timer)} ended with exit code $?, see "${log}`
  return [
    "umask 077",
    `cd ${shellWord(folder)}`,
    `{ ${path === undefined ? "" : `PATH=${shellWord(path)} `}${words.join(" ")} >>${log} 2>&1 || ` +
      `case $? in 3) ;; *) ${failed} ;; esac; }`,
  ]
    .join(" && ")
    .replaceAll("%", "\\%")
}

const comments = ({ times, timezone, machine_zone }: Timer): ReadonlyArray<string> => [
  `# ${times.join(", ")} in ${timezone ?? machine_zone}.`,
  ...(times.length > 1
    ? ["# After the first of them, a run finishes what was cut off, and else does nothing."]
    : []),
  ...(timezone === undefined || timezone === machine_zone
    ? []
    : [
        `# cron knows only the machine's zone, ${machine_zone}: these are its hours in summer and winter.`,
        "# In the other half of the year, the first of them is a late run of the night before.",
      ]),
  "# Exit codes 0 and 3 print nothing, so cron mails only failures.",
]

/** The timer's lines, between two comments by which they are found again. */
export const cronBlock = (timer: Timer, now: number): string => {
  const command = commandOf(timer)
  return [
    beginning(timerName(timer)),
    ...comments(timer),
    ...cronFields(cronTimes(timer, now)).map((fields) => `${fields} ${command}`),
    end(timerName(timer)),
    "",
  ].join("\n")
}

/**
 * The crontab with the timer's lines replaced or added, and nothing else changed; undefined if the end of
 * those lines is missing, so that it is unknown which of them are ours.
 */
export const withBlock = (crontab: string, name: string, block: string): string | undefined => {
  const lines = crontab.split("\n")
  const first = lines.indexOf(beginning(name))
  const last = lines.indexOf(end(name))
  if (first === -1 && last === -1) {
    const above = crontab === "" || crontab.endsWith("\n") ? crontab : `${crontab}\n`
    return `${above}${block}`
  }
  if (first === -1 || last < first) return undefined
  return [...lines.slice(0, first), ...block.split("\n").slice(0, -1), ...lines.slice(last + 1)].join("\n")
}

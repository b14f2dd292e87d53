/**
 * The units of a timer for systemd: a service, the timer that starts it, and a service that raises the alarm.
 * Exit code 3 is a run that is over: no failure of the machine.
 */
import { argumentsOf, runsText, timerName } from "./Timer.ts"
import type { Timer } from "./Timer.ts"

export interface TimerFile {
  readonly name: string
  readonly text: string
}

/** The first line of each of our files: only files that begin with it are replaced. */
export const mark = "# Written by `nightjar schedule`; changes are lost when it writes the file again."

/** systemd gives a service no more than this for all its credentials together. */
const credentialBytesMax = 1_000_000

/** A word of a command line: systemd expands % and $, and reads quotes and backslashes. */
const word = (text: string): string => quoted(specifiers(text).replaceAll("$", "$$$$"))
/** In an assignment a $ is a $. */
const assignment = (text: string): string => quoted(specifiers(text))
const quoted = (plain: string): string =>
  /^[A-Za-z0-9_\-.,:/@=+%$]+$/.test(plain)
    ? plain
    : `"${plain.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`
const specifiers = (text: string): string => text.replaceAll("%", "%%")

const unitsOf = (timer: Timer) => ({
  service: `nightjar-${timerName(timer)}.service`,
  timer: `nightjar-${timerName(timer)}.timer`,
  alarm: `nightjar-${timerName(timer)}-alarm.service`,
})

/** The file of variables is a credential too, if it is small enough: the service may then run as anybody. */
const variables = (timer: Timer, envFileBytes: number) => {
  const { env_file } = timer
  if (env_file === undefined) return { lines: [], argument: [] }
  if (envFileBytes > credentialBytesMax) return { lines: [], argument: ["--env-file", word(env_file)] }
  return { lines: [`LoadCredential=env:${specifiers(env_file)}`], argument: ["--env-file", "%d/env"] }
}

const serviceText = (timer: Timer, { envFileBytes, home }: Surroundings): string => {
  const { folder, command, path, credentials } = timer
  const { lines, argument } = variables(timer, envFileBytes)
  const start = [...command, ...argumentsOf(timer, undefined)].map(word)
  return [
    mark,
    "[Unit]",
    `Description=Nightjar: ${runsText(timer)}`,
    `OnFailure=${unitsOf(timer).alarm}`,
    "",
    "[Service]",
    "Type=oneshot",
    `WorkingDirectory=${specifiers(folder)}`,
    `ExecStart=${[...start, ...argument].join(" ")}`,
    "# 3: the run is over, and its summary says who has to act. Anything else but 0 raises the alarm:",
    "# 4 leaves work for the next start, 5 is a night that did not happen, 1, 2 and 6 need you.",
    "SuccessExitStatus=3",
    "# A run that is told to stop saves its state within 20 seconds; the next start resumes it.",
    "TimeoutStopSec=30",
    "UMask=0077",
    ...(path === undefined ? [] : [`Environment=${assignment(`PATH=${path}`)}`]),
    ...lines,
    ...credentials.map((name) => `LoadCredential=${specifiers(`${name}:${home}/.config/credstore/${name}`)}`),
    "",
  ].join("\n")
}

const timerText = (timer: Timer): string => {
  const { times, timezone } = timer
  const zone = timezone === undefined ? "" : ` ${timezone}`
  return [
    mark,
    "[Unit]",
    `Description=Nightjar: when it starts ${runsText(timer)}`,
    "",
    "[Timer]",
    ...(times.length > 1
      ? ["# The night, and further starts in it: they finish what was cut off, and else do nothing."]
      : []),
    ...times.map((time) => `OnCalendar=*-*-* ${time}:00${zone}`),
    "# If the machine was off, the night is made up for as soon as it is on again.",
    "Persistent=true",
    "",
    "[Install]",
    "WantedBy=timers.target",
    "",
  ].join("\n")
}

const alarmText = (timer: Timer): string => {
  const { service } = unitsOf(timer)
  const says = `nightjar: ${runsText(timer)} failed; journalctl --user -u ${service} says why`
  return [
    mark,
    "[Unit]",
    `Description=Nightjar: the alarm of ${runsText(timer)}`,
    "",
    "[Service]",
    "Type=oneshot",
    "# An error in the journal. Run here what reaches you: a mail, a message, a pager.",
    `ExecStart=/usr/bin/systemd-cat -p err -t nightjar echo ${word(says)}`,
    "",
  ].join("\n")
}

export interface Surroundings {
  readonly envFileBytes: number
  /** The home folder of the user whose units these are. */
  readonly home: string
}

export const timerUnit = (timer: Timer): string => unitsOf(timer).timer

export const systemdUnits = (timer: Timer, surroundings: Surroundings): ReadonlyArray<TimerFile> => {
  const units = unitsOf(timer)
  return [
    { name: units.timer, text: timerText(timer) },
    { name: units.service, text: serviceText(timer, surroundings) },
    { name: units.alarm, text: alarmText(timer) },
  ]
}

/**
 * The exit codes of every command, by the names that the code gives them. Cron lines and scripts branch on
 * them, so that they never change.
 */

export const exitCodes = {
  ok: 0,
  defect: 1,
  usage: 2,
  peopleMustAct: 3,
  leftovers: 4,
  locked: 5,
  refused: 6,
  interrupted: 130,
  terminated: 143,
} as const

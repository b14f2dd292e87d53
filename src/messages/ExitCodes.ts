/**
 * The exit codes of every command, by their names in the code. Cron lines and scripts depend on them, so
 * they never change.
 */

export const exitCodes = {
  ok: 0,
  defect: 1,
  usage: 2,
  peopleMustAct: 3,
  leftovers: 4,
  locked: 5,
  refused: 6,
  hungUp: 129,
  interrupted: 130,
  terminated: 143,
} as const

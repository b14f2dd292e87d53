/**
 * The ids of runs are ours: `<job name>.<date>`, sometimes with a number. They become folders and parts of
 * file names, so nothing from outside may become one.
 */
const pattern = /^[a-z0-9][a-z0-9.-]{0,199}$/

export const isRunId = (run_id: string): boolean => pattern.test(run_id) && !run_id.includes("..")

/** A job's newest runs, which say how long executions take and what comes first. */
export const runsLearntFrom = 10

/** So many runs go on beside each other at most: each has a thread for forms, and a part of the memory. */
export const runsBesideMax = 8

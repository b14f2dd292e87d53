/**
 * Every default of a job file, spelled as a user would spell it: the schema shows them to editors and loading
 * applies them, so the two cannot disagree.
 */
export const defaults = {
  seed: 1,
  speed: 1,
  execution_timeout: "20 minutes",
  max_wait: "3.5 hours",
  max_in_flight: 100,
  per_engine: 20,
  polling_min: "2 seconds",
  polling_max: "1 minute",
  max_attempts: 3,
  retry_base: "30 seconds",
  retry_max: "15 minutes",
  min_interval: "5 seconds",
  wait_final: "10 minutes",
  on_deadline: "carry",
  after_export: "delete",
  share: "none",
  exit_on: "any",
} as const

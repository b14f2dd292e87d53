/**
 * The rules of the service that a caller can break without being refused, and what an observer learns each
 * time.
 */

export const rules = [
  "results_read_too_soon",
  "rejected_login_repeated",
  "deleted_before_final_state_read",
  "deleted_unread",
  "foreign_run_touched",
  "state_polled_too_fast",
  "catalogue_polled_in_loop",
] as const

export interface RuleBreak {
  readonly at: number
  readonly rule: (typeof rules)[number]
  readonly application: string
  /** What the rule is about: an execution, a flow session, or only the application. */
  readonly execution_id?: string
  readonly session_id?: string
  readonly customer_id?: string
  readonly engine_reference?: string
  /** For a repeated login: whether the refusal had been read. Repeating an unread one is no fault. */
  readonly answer_read?: boolean
  /** For an execution that was deleted unread: the sub-families that no final answer carried in full. */
  readonly families?: ReadonlyArray<string>
}

/**
 * An application of the service (section 5): the caller with its secret, and what it may do. Executions,
 * sessions and tokens belong to one, and no other can see them.
 */
import { Context } from "effect"

export interface Application {
  readonly app_id: string
  readonly mayTokenize: boolean
}

/** The application whose secret a request carries. */
export class CallingApplication extends Context.Service<CallingApplication, Application>()(
  "nightjar/sandbox/CallingApplication",
) {}

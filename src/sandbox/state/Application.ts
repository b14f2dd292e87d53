/**
 * An application of the service (section 5): whoever calls with its secret, and what it may do. Executions,
 * sessions and tokens belong to one, and no other sees them.
 */
export interface Application {
  readonly app_id: string
  readonly mayTokenize: boolean
}

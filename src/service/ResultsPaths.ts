/**
 * Paths of the endpoints that return results (sections 4.10 and 4.12), separate from the contract that uses
 * them: the ledger needs them too and must not load an HTTP library for that.
 */

export const flowResultsPath = "/es-public-administration/v1/manager/:session_id/results"
export const profilePath = "/executions/results/:execution_id/customer/v1/profile"

/**
 * The service with something done to every call, whatever the call is: one list of the port's methods for
 * all such wrappers, so that none is forgotten.
 */
import type { Effect } from "effect"
import { Service } from "./Service.ts"
import type { CallFailure, Tagged } from "./Service.ts"

/** What is done to a call; its answers stay what they are. */
export type Around = <A, E extends Tagged = never>(
  call: Effect.Effect<A, CallFailure | E>,
) => Effect.Effect<A, CallFailure | E>

export const everyCall = (service: Service["Service"], around: Around): Service["Service"] =>
  Service.of({
    startExecution: (call, leaving) => around(service.startExecution(call, leaving)),
    readExecution: (execution_id) => around(service.readExecution(execution_id)),
    pollExecution: (execution_id) => around(service.pollExecution(execution_id)),
    abortExecution: (execution_id) => around(service.abortExecution(execution_id)),
    deleteExecution: (execution_id) => around(service.deleteExecution(execution_id)),
    readResults: (source, ids) => around(service.readResults(source, ids)),
    downloadAttachment: (session_id, id) => around(service.downloadAttachment(session_id, id)),
    exchangeTicket: (execution_id, ticket) => around(service.exchangeTicket(execution_id, ticket)),
    revokeToken: (token_id) => around(service.revokeToken(token_id)),
    listEngines: around(service.listEngines),
    showEngine: (engine_reference) => around(service.showEngine(engine_reference)),
  })

/** The one way in which tests make ids: any text, as an id of whichever kind is asked for. */
import type {
  CustomerId,
  EngineReference,
  ExecutionId,
  RunId,
  SessionId,
  TaskId,
} from "../../src/service/Ids.ts"

export type AnyId = RunId & TaskId & ExecutionId & SessionId & CustomerId & EngineReference

export const anId = (text: string): AnyId => text as AnyId

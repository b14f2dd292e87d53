/**
 * Where forms are compiled and values checked against them. A form comes from the service and can be made to
 * burn time or memory, so that whoever checks must be able to stop: the live checker is a thread
 * (`client/FormThread.ts`). Whatever a form does to its checker is an answer about it, never a failure.
 */
import { Context, Schema } from "effect"
import type { Effect } from "effect"
import type { FormAnswer, FormRequest } from "./FitForms.ts"

/** No form at all can be checked, for a reason that lies with this machine. Ends planning. */
export class FormsUncheckable extends Schema.TaggedError<FormsUncheckable>()("FormsUncheckable", {
  message: Schema.String,
}) {}

export class FormChecker extends Context.Service<
  FormChecker,
  { readonly check: (request: FormRequest) => Effect.Effect<FormAnswer, FormsUncheckable> }
>()("nightjar/forms/FormChecker") {}

/**
 * Where forms are compiled and values checked against them. A form comes from the service and can be built
 * to burn time or memory, so it must be possible to stop the check: the live checker is a thread
 * (`FormThread.ts`). Whatever a form does to its checker is an answer about the form, never a failure.
 */
import { Context, Schema } from "effect"
import type { Effect } from "effect"
import type { FormAnswer, FormRequest } from "./FitForms.ts"

/** No form can be checked at all, for a reason on this machine. Ends planning. */
export class FormsUncheckable extends Schema.TaggedError<FormsUncheckable>()("FormsUncheckable", {
  message: Schema.String,
}) {}

export class FormChecker extends Context.Service<
  FormChecker,
  { readonly check: (request: FormRequest) => Effect.Effect<FormAnswer, FormsUncheckable> }
>()("nightjar/forms/FormChecker") {}

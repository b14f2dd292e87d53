/**
 * Checks forms in the caller's own thread, at once and with the same answer every time: for simulated runs,
 * whose forms are known and whose time is virtual.
 */
import { Effect, Layer } from "effect"
import { makeFitter } from "../../src/client/FitForms.ts"
import { FormChecker } from "../../src/client/FormProcess.ts"

export const FormCheckerInProcess = {
  layer: Layer.sync(FormChecker, () => {
    const fit = makeFitter()
    return FormChecker.of({ check: (request) => Effect.sync(() => fit(request)) })
  }),
}

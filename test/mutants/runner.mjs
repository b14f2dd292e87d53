/**
 * The test runner loads a runner of its own by the default export of a file.
 */
export { SwitchingRunner as default } from "./SwitchingRunner.ts"

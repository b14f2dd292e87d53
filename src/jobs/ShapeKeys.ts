/**
 * How a key of a job file is declared: what an editor shows of it, and whether it must be there. Defaults are
 * only shown; loading applies them.
 */
import { Schema } from "effect"
import type { duration } from "./Scalars.ts"

/** `defaultValue` is only for editors; loading applies it. */
export const optional = <S extends Schema.Top>(schema: S, description: string, defaultValue?: S["Type"]) =>
  Schema.optionalKey(schema).pipe(
    Schema.annotateKey<Schema.optionalKey<S>>({
      description,
      ...(defaultValue === undefined ? {} : { default: defaultValue }),
    }),
  )

/** Flipped, because an editor needs the text in the file, not the duration that it becomes. */
export const optionalDuration = (
  between: ReturnType<typeof duration>,
  description: string,
  defaultValue?: string,
) => Schema.flip(optional(Schema.flip(between), description, defaultValue))

export const required = <S extends Schema.Top>(schema: S, description: string) =>
  schema.pipe(Schema.annotateKey<S>({ description }))

/** One rule in words, so `1.5` is one mistake, not two. */
export const count = (minimum: number, maximum: number) => {
  const expected = `a whole number from ${minimum} to ${maximum}`
  return Schema.Number.check(
    Schema.isInt({ expected }).abort(),
    Schema.isBetween({ minimum, maximum }, { expected }),
  )
}

/**
 * Schema building blocks of the remote contract: shapes that keep unknown fields, enumerations that let
 * unknown values pass, and answers that carry their HTTP status as a `_tag`. The service may change at any
 * time; nothing that it adds may be lost or refused (architecture, decision 10).
 */
import { Schema } from "effect"
import { HttpApiSchema } from "effect/http-api"

/** A struct that keeps fields it does not name. */
export const open = <const Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.StructWithRest(Schema.Struct(fields), [Schema.Record(Schema.String, Schema.Unknown)])

/** An enumeration that also accepts, as a string, a value that the reference does not list. */
export const openEnum = <const Values extends ReadonlyArray<string>>(values: Values) =>
  Schema.Union([Schema.Literals(values), Schema.String])

/** A body with its own HTTP status; the tag distinguishes answers in code and is never sent. */
export const answer = <const Tag extends string, const Fields extends Schema.Struct.Fields>(
  tag: Tag,
  status: number,
  fields: Fields,
) => open({ _tag: Schema.tagDefaultOmit(tag), ...fields }).pipe(HttpApiSchema.status(status))

/** An answer without a body. */
export const emptyAnswer = <const Tag extends string>(tag: Tag, status: number) =>
  Schema.TaggedStruct(tag, {}).pipe(
    HttpApiSchema.asNoContent({ decode: () => ({ _tag: tag }) as never }),
    HttpApiSchema.status(status),
  )

/** "string, optional, nullable" in the reference. */
export const nullableOptional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

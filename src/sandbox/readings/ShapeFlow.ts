/**
 * The flow API's answers under a reading: how the records of a results body are arranged (section 2.7) and
 * what its own errors look like (section 7).
 */
import type { FullReading } from "../state/Reading.ts"

interface ResultsBody {
  readonly data: Readonly<Record<string, unknown>>
}

/** 2.7: by product, or one list of everything that `data` holds. */
export const shapeResults = <Body extends ResultsBody>(
  { flow_data }: FullReading,
  body: Body,
): Omit<Body, "data"> & { readonly data: unknown } =>
  flow_data === "list" ? { ...body, data: Object.values(body.data).flat() } : body

const codes: Readonly<Record<number, string>> = {
  404: "NOT_FOUND",
  412: "SESSION_NOT_STARTED",
  429: "TOO_MANY_REQUESTS",
  504: "SESSION_LOCKED",
}

/** What a gateway answers for a path that it does not know. */
export const gatewayPage = "<html><head><title>404 Not Found</title></head><body>nginx</body></html>"

export interface ErrorBody {
  readonly text: string
  readonly contentType: string
}

/** 7: undefined if the body stays as it is. */
export const flowError = ({ flow_error_body }: FullReading, status: number): ErrorBody | undefined => {
  const code = codes[status]
  if (code === undefined || flow_error_body === "detail") return undefined
  if (flow_error_body === "empty") return { text: "", contentType: "text/plain" }
  if (flow_error_body === "html") {
    return { text: `<html><body><h1>${status}</h1></body></html>`, contentType: "text/html" }
  }
  const text = JSON.stringify({ error: { code, message: `the session answers ${status}` } })
  return { text, contentType: "application/json" }
}

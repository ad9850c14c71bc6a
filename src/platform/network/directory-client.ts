/** A client for a PLC directory: the public one over HTTP, or the one inside a development server. */
import { parseDidDocument, type DidDocument } from '../../protocol/did-document.ts'
import type { Did } from '../../protocol/identifiers.ts'
import {
  parseAuditLog,
  parseOperation,
  parseState,
  type AuditEntry,
  type LogOperation,
  type PlcState,
} from '../../protocol/plc.ts'
import { certificateWords } from './clock-comparison.ts'
import { OutboundError, type Outbound } from './outbound.ts'

/**
 * Reads return null for a DID that is not registered (404) or is tombstoned (410). All methods throw
 * `PlcDirectoryError`.
 */
export interface PlcDirectory {
  document(did: Did): Promise<DidDocument | null>
  state(did: Did): Promise<PlcState | null>
  lastOperation(did: Did): Promise<LogOperation | null>
  auditLog(did: Did): Promise<AuditEntry[] | null>
  submit(did: Did, operation: LogOperation): Promise<void>
}

export class PlcDirectoryError extends Error {
  constructor(
    /** HTTP status of the directory, 2xx if its response could not be parsed; null if it did not respond. */
    readonly status: number | null,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}

const TIMEOUT_MILLIS = 10_000
/** Longest audit log. */
const MAX_LOG_BYTES = 4 * 1024 * 1024
/** Operations of the public directory have at most 7,500 bytes. */
const MAX_DOCUMENT_BYTES = 64 * 1024
/** Longest reason of the directory that is passed on. */
const MAX_MESSAGE_CHARS = 500
const UNREACHABLE = 'PLC directory unreachable'
const OPERATION_FAILED = 'Unable to perform PLC operation'

/**
 * `url` is the directory's base URL, without a trailing slash. Nothing is cached: proofs depend on the current state.
 */
export function remotePlcDirectory(url: string, outbound: Outbound): PlcDirectory {
  async function call(path: string, maxBytes: number, operation?: LogOperation): Promise<Response> {
    const bounds = { headersTimeoutMillis: TIMEOUT_MILLIS, bodyTimeoutMillis: TIMEOUT_MILLIS, maxBytes }
    try {
      return operation === undefined
        ? await outbound.fetch(`${url}/${path}`, bounds)
        : await outbound.fetch(`${url}/${path}`, {
            ...bounds,
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(operation),
          })
    } catch (cause) {
      throw unread(cause)
    }
  }

  async function read<Value>(
    path: string,
    maxBytes: number,
    parse: (json: unknown) => Value | null,
  ): Promise<Value | null> {
    const response = await call(path, maxBytes)
    const json = await readJson(response)
    if (response.status === 404 || response.status === 410) return null
    if (!response.ok) throw refusedBy(response, json)
    const value = parse(json)
    if (value === null) throw new PlcDirectoryError(response.status, 'PLC directory sent an invalid response')
    return value
  }

  return {
    document: (did) => read(did, MAX_DOCUMENT_BYTES, (json) => parseDidDocument(json, did)),
    state: (did) => read(`${did}/data`, MAX_DOCUMENT_BYTES, parseState),
    lastOperation: (did) => read(`${did}/log/last`, MAX_DOCUMENT_BYTES, parseOperation),
    auditLog: (did) => read(`${did}/log/audit`, MAX_LOG_BYTES, parseAuditLog),
    async submit(did, operation) {
      const response = await call(did, MAX_DOCUMENT_BYTES, operation)
      if (!response.ok) throw refusedBy(response, await readJson(response))
      await response.body?.cancel()
    },
  }
}

/** Returns the JSON of a response, or undefined if it is not JSON. Throws `PlcDirectoryError` if the transfer fails. */
async function readJson(response: Response): Promise<unknown> {
  try {
    return JSON.parse(await response.text())
  } catch (cause) {
    if (cause instanceof SyntaxError) return undefined
    throw unread(cause)
  }
}

function unread(cause: unknown): PlcDirectoryError {
  if (!(cause instanceof OutboundError)) return new PlcDirectoryError(null, UNREACHABLE, { cause })
  if (cause.fault === 'too-large') return new PlcDirectoryError(null, `PLC directory sent ${cause.message}`, { cause })
  const untimely = certificateWords(cause.cause)
  return new PlcDirectoryError(null, untimely === null ? UNREACHABLE : `${UNREACHABLE}: ${untimely}`, { cause })
}

function refusedBy(response: Response, json: unknown): PlcDirectoryError {
  const message = (json as { message?: unknown } | null | undefined)?.message
  return new PlcDirectoryError(
    response.status,
    typeof message === 'string' ? message.slice(0, MAX_MESSAGE_CHARS) : OPERATION_FAILED,
  )
}

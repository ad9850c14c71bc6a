/** Client of the PLC directory: reads the log of an identity and submits its next operation. */
import { OperatorError } from '../base/operator-error.ts'
import {
  checkAuditLog,
  operationCid,
  parseAuditLog,
  type AuditEntry,
  type LogOperation,
  type PlcState,
} from '../protocol/plc.ts'
import { fetchJson, inOneLine, NoAnswer } from '../base/server-request.ts'

const PUBLIC_DIRECTORY = 'https://plc.directory'

/**
 * The default directory of a server. A development server, the only kind that is reached without TLS, has a directory
 * of its own.
 */
export const directoryOf = (server: string): string => (server.startsWith('http:') ? server : PUBLIC_DIRECTORY)

const TOO_MANY_REQUESTS = 429

export interface IdentityHead {
  operation: LogOperation
  state: PlcState
}

export class WalletDirectory {
  readonly url: string

  constructor(url: string) {
    this.url = url
  }

  /** The operations of a DID, all checked. Empty if the directory does not know it. */
  async #log(did: string): Promise<AuditEntry[]> {
    const { status, body } = await fetchJson(`${this.url}/${did}/log/audit`, { method: 'GET' })
    if (status === 404) return []
    const log = status === 200 ? parseAuditLog(body) : null
    if (log === null) throw new NoAnswer(`the directory ${this.url} returned ${status} for ${did}`)
    const outcome = checkAuditLog(did, log)
    if (!outcome.ok)
      throw new OperatorError(`the directory ${this.url} returned an invalid log of ${did} (${outcome.fault})`)
    return log
  }

  /** The current state. Throws OperatorError if there is none, or if the identity has been ended. */
  async head(did: string): Promise<IdentityHead> {
    const log = await this.#log(did)
    if (log.length === 0) throw new OperatorError(`the directory ${this.url} does not know ${did}`)
    const outcome = checkAuditLog(did, log)
    const state = outcome.ok ? outcome.state : null
    if (!outcome.ok || state === null)
      throw new OperatorError(`the identity ${did} has been tombstoned in the directory`)
    return { operation: outcome.head.operation, state }
  }

  /** Whether the operation is in effect: it is the head of the log or precedes it, and is not nullified. */
  async has(did: string, operation: LogOperation): Promise<boolean> {
    const cid = operationCid(operation).toString()
    return (await this.#log(did)).some((entry) => entry.cid === cid && !entry.nullified)
  }

  /**
   * Submit the operation as the new head. May be repeated: after a repetition or a lost answer, the log decides.
   * Returns the directory's message if it refuses for good, else null. Throws `NoAnswer` while it is unknown whether
   * the operation becomes the head.
   */
  async submit(did: string, operation: LogOperation): Promise<string | null> {
    const { refused, said } = await this.#post(did, operation)
    if (said === null || (await this.has(did, operation))) return null
    if (refused) return said
    throw new NoAnswer(`the directory ${this.url} did not accept the operation: ${said}`)
  }

  async #post(did: string, operation: LogOperation): Promise<{ refused: boolean; said: string | null }> {
    const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(operation) }
    try {
      const { status, body } = await fetchJson(`${this.url}/${did}`, request)
      if (status >= 200 && status < 300) return { refused: false, said: null }
      const { message } = (body ?? {}) as { message?: unknown }
      return {
        refused: status >= 400 && status < 500 && status !== TOO_MANY_REQUESTS,
        said: typeof message === 'string' ? inOneLine(message) : `status ${status}`,
      }
    } catch (error) {
      if (error instanceof NoAnswer) return { refused: false, said: error.message }
      throw error
    }
  }
}

/** HTTP client for the server of an account, with a session of its holder. What it needs is loaded on use. */
import { OperatorError } from '../base/operator-error.ts'
import type { JsonAnswer } from '../base/server-request.ts'
import { type Invocation, Misuse, type Terminal } from './command.ts'
import { secret } from './prompts.ts'

export interface Session {
  did: string
  handle: string
  accessJwt: string
  refreshJwt: string
}

/** Timeout of a request. The upload of a repository takes longest. */
const REQUEST_MILLIS = 600_000
/** Timeout of the request that ends the session: a server that does not answer must not keep the command. */
const LOG_OUT_MILLIS = 10_000

interface Sent {
  type?: string
  body?: string | Blob
  timeoutMillis?: number
}

export class HolderServer {
  #session: Session | null = null

  constructor(readonly url: string) {}

  get = <T>(path: string): Promise<T> => this.#ask<T>('GET', path)
  delete = <T>(path: string): Promise<T> => this.#ask<T>('DELETE', path)
  post = <T>(path: string, input: object | null): Promise<T> =>
    this.#ask<T>('POST', path, input === null ? {} : { type: 'application/json', body: JSON.stringify(input) })

  /** Send a file. */
  async upload(path: string, body: Blob, type: string): Promise<void> {
    await this.#ask('POST', path, { type, body })
  }

  /** Yields the bytes of a download. */
  async *download(path: string): AsyncGenerator<Uint8Array> {
    const [{ safeRoute }, { userAgentHeader }, { arriving }] = await Promise.all([
      import('../base/server-request.ts'),
      import('../base/user-agent-header.ts'),
      import('./downloads.ts'),
    ])
    const url = new URL(path, this.url)
    const response = await fetch(url, {
      ...safeRoute(url.protocol),
      headers: { authorization: `Bearer ${this.#session?.accessJwt}`, 'user-agent': userAgentHeader('cli') },
    })
    if (!response.ok) throw new OperatorError(`${this.url} answered ${response.status}`)
    yield* arriving(response, this.url)
  }

  /** Sign in with the account's password at this server. */
  async logIn(identifier: string, password: string): Promise<void> {
    this.enter(await this.post<Session>('/xrpc/com.atproto.server.createSession', { identifier, password }))
  }

  enter(session: Session): void {
    this.#session = session
  }

  /** End the session. If that fails, warns only: what the command has done stays done. */
  async logOut(terminal: Terminal): Promise<void> {
    if (this.#session === null) return
    const { ServerRefusal } = await import('../base/server-request.ts')
    const { refreshJwt } = this.#session
    this.#session = null
    try {
      const sent = { timeoutMillis: LOG_OUT_MILLIS }
      await this.#resultOf(await this.#send('POST', '/xrpc/com.atproto.server.deleteSession', refreshJwt, sent))
    } catch (error) {
      // The session may have ended with what the command did.
      if (error instanceof ServerRefusal && (error.status === 400 || error.status === 401)) return
      terminal.err(`warning: could not end the session that this command opened: ${(error as Error).message}`)
    }
  }

  /** A command may take longer than an access token is valid. */
  async #ask<T>(method: string, path: string, sent: Sent = {}): Promise<T> {
    const first = await this.#send(method, path, this.#session?.accessJwt, sent)
    if (first.status !== 401 || this.#session === null) return this.#resultOf(first)
    const renewed = await this.#send('POST', '/xrpc/com.atproto.server.refreshSession', this.#session.refreshJwt)
    this.enter(await this.#resultOf<Session>(renewed))
    return this.#resultOf(await this.#send(method, path, this.#session.accessJwt, sent))
  }

  async #send(
    method: string,
    path: string,
    token: string | undefined,
    { type, body, timeoutMillis = REQUEST_MILLIS }: Sent = {},
  ): Promise<JsonAnswer> {
    const [{ fetchJson }, { userAgentHeader }] = await Promise.all([
      import('../base/server-request.ts'),
      import('../base/user-agent-header.ts'),
    ])
    const headers = {
      'user-agent': userAgentHeader('cli'),
      ...(type !== undefined && { 'content-type': type }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    }
    return fetchJson(`${this.url}${path}`, { method, headers, body }, timeoutMillis)
  }

  async #resultOf<T>(answer: JsonAnswer): Promise<T> {
    const { refusalOf } = await import('../base/server-request.ts')
    if (answer.status !== 200) throw refusalOf(this.url, answer)
    return answer.body as T
  }
}

/** Returns the origin of the server that `--server` names. Throws `Misuse` if the option is missing. */
export async function serverUrl({ options: { server } }: Invocation): Promise<string> {
  if (server === undefined) throw new Misuse('the server is required: add --server')
  const { serverOrigin } = await import('../base/server-request.ts')
  return serverOrigin(server)
}

/** Run `act` in a session of the account that the first argument names. */
export async function whileSignedIn<T>(
  invocation: Invocation,
  server: HolderServer,
  act: () => Promise<T>,
): Promise<T> {
  const account = invocation.positionals[0]!.replace(/^@/, '')
  await server.logIn(account, await secret(invocation, `Password at ${new URL(server.url).host}`))
  try {
    return await act()
  } finally {
    await server.logOut(invocation.terminal)
  }
}

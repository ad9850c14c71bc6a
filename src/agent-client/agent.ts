/**
 * An agent: registers, gets the account holder's confirmation, and calls the server with access tokens that it renews
 * itself. Its file holds the state that must outlive the process, but no access tokens, because these expire in
 * minutes.
 */
import { readFile } from 'node:fs/promises'
import { OperatorError } from '../base/operator-error.ts'
import type { SealedFile } from '../base/sealed-file.ts'
import { NoAnswer, ServerRefusal, textOf, type Answer } from '../base/server-request.ts'
import { SingleFlight } from '../base/single-flight.ts'
import { ID_JAG } from '../protocol/agent-names.ts'
import { parseDid, type Did, type Millis } from '../protocol/identifiers.ts'
import { decodeJws } from '../protocol/jws.ts'
import { freshAgent, type AgentContents, type ClaimCode } from './agent-contents.ts'
import { AgentEnded, ended, isRefused, isTokenOver, NotConfirmed, scopeWords } from './agent-faults.ts'
import { AgentServer, claimCodeOf, type XrpcCall } from './agent-server.ts'

/** An access token that expires sooner than this is no longer used. */
const MARGIN_MILLIS = 30_000
/** Time between polls, until the server asks for more. */
const POLL_MILLIS = 5000
/** Added to the interval each time the server answers `slow_down`. Source: RFC 8628, 3.5. */
const SLOWER_MILLIS = 5000

/** Tokens that can be sent in a header. Source: RFC 6750, 2.1. */
const sendable = /^[\w.~+/-]+=*$/

interface Access {
  token: string
  scopes: readonly string[]
  expiresAt: Millis
}

/** The current time, and pauses. */
export interface Time {
  now(): Millis
  pause(millis: number): Promise<void>
}

export class Agent {
  readonly #file: SealedFile<AgentContents>
  readonly #time: Time
  #server: AgentServer
  #contents: AgentContents
  #access: Access | null = null
  #pollMillis = POLL_MILLIS
  #nextPollAt: Millis = 0
  readonly #renewals = new SingleFlight<'access', Access>()

  constructor(file: SealedFile<AgentContents>, contents: AgentContents, time: Time) {
    this.#file = file
    this.#contents = contents
    this.#time = time
    this.#server = new AgentServer(contents.server)
  }

  get server(): AgentServer {
    return this.#server
  }

  get contents(): Readonly<AgentContents> {
    return this.#contents
  }

  /** Start over with another registration in the same file. Takes effect once the agent has registered again. */
  forget(contents: AgentContents): void {
    this.#contents = { ...contents, registration: this.#contents.registration }
    this.#server = new AgentServer(contents.server)
  }

  /** Give the agent a name, if it has none and has not registered yet. */
  callItself(name: string): void {
    if (!this.#contents.name && this.#contents.registration === null) this.#contents = { ...this.#contents, name }
  }

  /**
   * Register, and ask for a code. Returns null if the server knows the agent and has confirmed it. `assertion` is the
   * provider's. Throws `AgentEnded` if the account holder has revoked the agent for which the provider vouches.
   */
  async register(assertion?: string): Promise<ClaimCode | null> {
    const { type, name, loginHint, assertionFile } = this.#contents
    const more: Record<string, string> = name ? { client_name: name } : {}
    if (type === 'service_auth') more['login_hint'] = loginHint ?? ''
    if (type === 'identity_assertion') {
      more['assertion_type'] = ID_JAG
      more['assertion'] = assertion ?? (await providerAssertion(assertionFile))
    }
    const answer = await this.server.register(type, more).catch((error: unknown) => {
      if (isRefused(error, 'interaction_required')) return error.answer
      throw type === 'identity_assertion' && isRefused(error, 'access_denied') ? ended(error) : error
    })
    const [id, claimToken] = [optional(answer, 'registration_id'), optional(answer, 'claim_token')]
    this.#access = null
    this.#pollMillis = POLL_MILLIS
    this.#nextPollAt = 0
    if (claimToken === null) {
      await this.#write({
        ...freshAgent(this.#contents),
        registration: { id, claimToken, claim: null },
        assertion: textOf(answer, 'identity_assertion'),
      })
      return null
    }
    const claim =
      answer['claim'] === undefined
        ? await this.#openClaim(claimToken)
        : claimCodeOf(answer['claim'], (answer['claim'] as Answer)['expires_at'])
    await this.#write({ ...freshAgent(this.#contents), registration: { id, claimToken, claim } })
    return claim
  }

  async #openClaim(claimToken: string): Promise<ClaimCode> {
    const answer = await this.server.openClaim(claimToken)
    return claimCodeOf(answer['claim_attempt'], answer['expires_at'])
  }

  /**
   * Wait at most this long until the agent is confirmed. Throws `NotConfirmed` if it is not confirmed by then, and
   * `AgentEnded`.
   */
  async wait(millis: number): Promise<void> {
    const end = this.#time.now() + millis
    for (;;) {
      try {
        await this.access()
        return
      } catch (error) {
        if (!(error instanceof NotConfirmed) || error.claim === null) throw error
        const rest = this.#nextPollAt - this.#time.now()
        if (this.#time.now() + rest > end) throw error
        await this.#time.pause(Math.max(rest, 0))
      }
    }
  }

  /** The account that the agent acts for. */
  async did(): Promise<Did> {
    const { token } = await this.access()
    const did = parseDid(String(decodeJws(token)?.payload['sub']))
    if (did === null) throw new NoAnswer('the access token does not say for which account it is')
    return did
  }

  /** Returns a valid access token. Throws `NotConfirmed` and `AgentEnded`. */
  access(): Promise<Access> {
    const held = this.#access
    if (held !== null && held.expiresAt - this.#time.now() > MARGIN_MILLIS) return Promise.resolve(held)
    return this.#renewals.run('access', () => this.#renewed())
  }

  async #renewed(): Promise<Access> {
    if (!this.#file.isUnchanged()) await this.#readAgain()
    const { assertion, registration, type, assertionFile } = this.#contents
    if (assertion !== null) {
      try {
        return this.#hold(await this.server.exchange(assertion))
      } catch (error) {
        if (isRefused(error, 'access_denied')) throw ended(error)
        if (!isRefused(error, 'invalid_grant')) throw error
      }
    }
    // The assertion has expired, or there is none yet. A new one comes with the holder's confirmation, or from the
    // provider.
    const byClaim = registration?.claimToken ? await this.#polled(registration.claimToken, registration.claim) : null
    if (byClaim !== null) return byClaim
    if (type !== 'identity_assertion' || assertionFile === null || registration === null) throw new NotConfirmed(null)
    const claim = await this.register()
    if (claim !== null) throw new NotConfirmed(claim)
    return this.#hold(await this.server.exchange(this.#contents.assertion!))
  }

  /** Poll the claim once. Returns null if it can no longer succeed. Throws `NotConfirmed` while it is pending. */
  async #polled(claimToken: string, claim: ClaimCode | null): Promise<Access | null> {
    const waiting = this.#contents.assertion === null ? claim : null
    if (this.#time.now() < this.#nextPollAt && waiting !== null) throw new NotConfirmed(waiting)
    try {
      // The server measures the interval from when it receives a poll, which is before its answer arrives here.
      const answer = await this.server
        .poll(claimToken)
        .finally(() => (this.#nextPollAt = this.#time.now() + this.#pollMillis))
      const access = this.#hold(answer)
      const { registration } = this.#contents
      await this.#write({
        ...this.#contents,
        registration: registration && { ...registration, claim: null },
        assertion: textOf(answer, 'identity_assertion'),
      })
      return access
    } catch (error) {
      if (isRefused(error, 'slow_down')) {
        this.#pollMillis += SLOWER_MILLIS
        this.#nextPollAt = this.#time.now() + this.#pollMillis
        throw new NotConfirmed(claim)
      }
      if (isRefused(error, 'authorization_pending')) throw new NotConfirmed(claim)
      if (isRefused(error, 'access_denied')) throw ended(error)
      if (isRefused(error, 'expired_token', 'invalid_grant')) return null
      throw error
    }
  }

  #hold(answer: Answer): Access {
    const secs = answer['expires_in']
    if (typeof secs !== 'number' || String(answer['token_type']).toLowerCase() !== 'bearer')
      throw new NoAnswer('the server returned a token of an unknown kind')
    const token = textOf(answer, 'access_token')
    if (!sendable.test(token)) throw new NoAnswer('the server returned a token that cannot be sent')
    const scopes = (optional(answer, 'scope') ?? '').split(' ')
    return (this.#access = { token, scopes, expiresAt: this.#time.now() + secs * 1000 })
  }

  /**
   * Call a method as the account. If the server no longer accepts the token, the agent gets a new one, once: that shows
   * whether the agent was revoked. Throws `ServerRefusal`, `NoAnswer`, `NotConfirmed` and `AgentEnded`.
   */
  async call(nsid: string, how: Omit<XrpcCall, 'token'>): Promise<Answer> {
    const { token } = await this.access()
    try {
      return await this.server.xrpc(nsid, { ...how, token })
    } catch (error) {
      if (!isTokenOver(error)) throw await this.#explained(error)
      if (this.#access?.token === token) this.#access = null
    }
    const { token: renewed } = await this.access()
    return this.server.xrpc(nsid, { ...how, token: renewed }).catch(async (error: unknown) => {
      throw await this.#explained(error)
    })
  }

  /** Explain a 403: returns an error that says what the agent may do. */
  async #explained(error: unknown): Promise<unknown> {
    if (!(error instanceof ServerRefusal) || error.status !== 403) return error
    const { scopes } = await this.access()
    return new OperatorError(`this agent may not do that: ${error.message}. Its scopes are: ${scopeWords(scopes)}`, {
      cause: error,
    })
  }

  /**
   * Read the file again. If another process has registered at another server meanwhile, switch to that server and drop
   * the access token, because credentials of one server must never go to another.
   */
  async #readAgain(): Promise<void> {
    if (this.#file.isGone())
      throw new AgentEnded(`the agent was ended on this machine, where ${this.#file.path} was deleted`)
    this.#contents = await this.#file.read()
    const { server } = this.#contents
    if (server === this.#server.url) return
    this.#server = new AgentServer(server)
    this.#access = null
  }

  /**
   * Write the contents, although another process may have updated the same registration meanwhile. If the other process
   * has made another registration, that one counts from now on: throws OperatorError.
   */
  async #write(contents: AgentContents): Promise<void> {
    if (this.#file.isGone()) this.#file.forget()
    if (!this.#file.isUnchanged()) {
      const own = this.#contents.registration?.id
      await this.#readAgain()
      if (this.#contents.registration?.id !== own)
        throw new OperatorError(`another program has re-registered the agent of ${this.#file.path}; try again`)
    }
    await this.#file.write(contents)
    this.#contents = contents
  }
}

const optional = (answer: Answer, name: string): string | null => {
  const value = answer[name]
  return typeof value === 'string' && value !== '' ? value : null
}

async function providerAssertion(path: string | null): Promise<string> {
  if (path === null)
    throw new OperatorError('an assertion of the provider is needed: pass it to "holdfast agent register"')
  const text = (await readFile(path, 'utf8')).trim()
  if (text === '') throw new OperatorError(`${path} holds no assertion`)
  return text
}

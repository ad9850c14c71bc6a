/**
 * Apps that accounts sign in to with OAuth: what they do at any node, with keys of their own, and what has to hold of
 * codes, refresh tokens and proofs. All of these count once.
 */
import { createHash, type KeyObject } from 'node:crypto'
import { hiddenFields, loopbackClientId, REDIRECT_URI, tickedScopes } from '../../support/clients/oauth-client.ts'
import { generateKeyPairSync, randomUUID, sign } from './chance.ts'
import type { Client, Holder } from './clients.ts'
import type { Register } from './ledger.ts'
import { wallMillis } from './seams.ts'
import { PASSWORD, URL_OF_SERVICE, type Ask, type Node, type Reply, type World } from './world.ts'

const SCOPE = 'atproto transition:generic'
const CLIENT_ID = loopbackClientId(SCOPE)
/** Sessions that are used: the newest ones, whether or not they have ended. */
const USED = 4
/** How long a client waits before it signs in again at a server that is in trouble. */
const BUSY_MILLIS = 200
/** How probable it is that something which counts once is asked for twice. */
const TWICE_SHARE = 0.3
/** How often a request is sent that needs another nonce. */
const MAX_TRIES = 3

export interface AppSession {
  holder: Holder
  /** How it is called in traces. */
  name: string
  app: App
  accessToken: string
  refreshToken: string
  /** Whether it is `live` or `ended`. */
  state: Register
  /** How many failovers there were before it was opened. */
  era: number
  /** Refresh tokens of which nobody knows when they are exchanged: the answer never came. */
  unanswered: Set<string>
  /** A refresh token is exchanged by one client at a time. */
  isExtended: boolean
}

/** All sessions of apps in a world. */
export class AppSessions {
  readonly #all: AppSession[] = []
  #names = 0

  constructor(readonly world: World) {}

  newName(): string {
    return `app session ${++this.#names}`
  }

  get used(): readonly AppSession[] {
    return this.#all.slice(-USED)
  }

  add(session: AppSession): void {
    this.#all.push(session)
  }
}

interface Key {
  privateKey: KeyObject
  jwk: object
}

/** Of clients, by their index: the server remembers keys across worlds. */
const keys = new Map<number, Key>()

function keyOf(index: number): Key {
  const known = keys.get(index)
  if (known !== undefined) return known
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const made = { privateKey, jwk: publicKey.export({ format: 'jwk' }) }
  keys.set(index, made)
  return made
}

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64url')
const formOf = (fields: URLSearchParams): NonNullable<Ask['content']> => ({
  bytes: Buffer.from(fields.toString()),
  mimeType: 'application/x-www-form-urlencoded',
})

/** What a server in trouble says, or one that limits. */
const isBusy = (reply: Reply): boolean => reply === null || reply.status === 503 || reply.status === 429

/** The app of a client. */
export class App {
  /** The newest one that a node has handed out. */
  #nonce: string | undefined

  constructor(readonly client: Client) {}

  get #world(): World {
    return this.client.world
  }

  get #ledger() {
    return this.#world.watch.ledger
  }

  #note(what: string): void {
    this.#world.note(this.client.name, what)
  }

  #proof(method: string, path: string, accessToken?: string): string {
    const { privateKey, jwk } = keyOf(this.client.index)
    const signed = `${encoded({ typ: 'dpop+jwt', alg: 'ES256', jwk })}.${encoded({
      jti: randomUUID(),
      htm: method,
      htu: `${URL_OF_SERVICE}${path}`,
      iat: Math.floor(wallMillis() / 1000),
      nonce: this.#nonce,
      ath: accessToken && hashOf(accessToken),
    })}`
    const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' })
    return `${signed}.${Buffer.from(signature).toString('base64url')}`
  }

  /** Post a form with a proof, again if that lacks the present nonce. */
  async #post(node: Node, path: string, fields: Record<string, string>): Promise<Reply> {
    const content = formOf(new URLSearchParams({ client_id: CLIENT_ID, ...fields }))
    return this.#withNonce(() => this.client.ask(node, path, { content, headers: { dpop: this.#proof('POST', path) } }))
  }

  /** Ask for a method of XRPC. */
  call(node: Node, nsid: string, { accessToken }: AppSession, ask: Pick<Ask, 'json'>): Promise<Reply> {
    const method = ask.json === undefined ? 'GET' : 'POST'
    return this.#withNonce(() =>
      this.#send(node, nsid, accessToken, this.#proof(method, `/xrpc/${nsid}`, accessToken), ask),
    )
  }

  #send(node: Node, nsid: string, accessToken: string, dpop: string, ask: Pick<Ask, 'json'>): Promise<Reply> {
    return this.client.ask(node, `/xrpc/${nsid}`, { ...ask, headers: { authorization: `DPoP ${accessToken}`, dpop } })
  }

  async #withNonce(send: () => Promise<Reply>): Promise<Reply> {
    for (let tries = 1; ; tries++) {
      const reply = await send()
      this.#nonce = reply?.headers.get('dpop-nonce') ?? this.#nonce
      if (reply?.body['error'] !== 'use_dpop_nonce' || tries === MAX_TRIES) return reply
    }
  }

  /** Whether the session can be as it is said to be. One may be lost in a failover. */
  mayBe({ state, era }: AppSession, what: 'live' | 'ended', from: number): boolean {
    return (what === 'ended' && era !== this.#ledger.era) || state.mayBe(what, from, this.#world.timeline.now)
  }

  /** From now on, nobody knows whether the session has ended. */
  #mayEnd({ state }: AppSession): void {
    const { now } = this.#world.timeline
    state.end(state.begin('ended', now), 'unknown', now)
  }

  /** Sign in: push a request, allow it on the page, and redeem the code. */
  async signIn(holder: Holder): Promise<void> {
    const { era } = this.#ledger
    const verifier = randomUUID() + randomUUID()
    const name = this.#world.apps!.newName()
    const pushed = this.#expected(
      `push a request for ${name} of ${holder.name}`,
      await this.#post(this.client.node(), '/oauth/par', {
        response_type: 'code',
        redirect_uri: REDIRECT_URI,
        code_challenge: hashOf(verifier),
        code_challenge_method: 'S256',
        scope: SCOPE,
        state: name,
      }),
      { status: 201, era },
    )
    if (pushed === null) return this.client.pause(BUSY_MILLIS)
    const code = await this.#allow(holder, name, String(pushed.body['request_uri']), era)
    if (code !== null) await this.#redeem(holder, name, { code, code_verifier: verifier }, era)
  }

  /** At once, at nodes that may be different ones. */
  #onceOrTwice<Told>(send: () => Promise<Told>): Promise<Told[]> {
    return Promise.all(this.#world.timeline.happens(TWICE_SHARE) ? [send(), send()] : [send()])
  }

  /** Sign in on the page and allow everything, with two clicks now and then. Returns the code, or null. */
  async #allow(holder: Holder, name: string, requestUri: string, era: number): Promise<string | null> {
    const query = new URLSearchParams({ client_id: CLIENT_ID, request_uri: requestUri })
    const page = this.#expected(
      `open the page of ${name}`,
      await this.client.ask(this.client.node(), `/oauth/authorize?${query}`, {}),
      { status: 200, era },
    )
    if (page === null) return null
    const text = String(page.body['message'])
    const person = { identifier: `${holder.name}.test`, password: PASSWORD }
    const form = new URLSearchParams({ ...hiddenFields(text), ...person, action: 'approve' })
    for (const scope of tickedScopes(text)) form.append('granted_scope', scope)
    const replies = await this.#onceOrTwice(() =>
      this.client.ask(this.client.node(), '/oauth/authorize', { content: formOf(form) }),
    )
    const decided = this.#decided(`allow ${name}`, replies, { status: 303, era })
    const codes = new Set(decided.map(({ headers }) => new URL(headers.get('location')!).searchParams.get('code')))
    if (codes.size > 1) this.#world.fail(`${name} is decided twice: ${[...codes].join(' and ')}`)
    if (codes.has(null)) this.#world.fail(`${holder.name} allows ${name}, and there is no code`)
    return [...codes][0] ?? null
  }

  /** Redeem a code, twice now and then. */
  async #redeem(holder: Holder, name: string, code: Record<string, string>, era: number): Promise<void> {
    const fields = { grant_type: 'authorization_code', redirect_uri: REDIRECT_URI, ...code }
    const replies = await this.#onceOrTwice(() => this.#post(this.client.node(), '/oauth/token', fields))
    const [accepted, again] = this.#decided(`redeem the code of ${name}`, replies, { status: 200, era })
    if (again !== undefined) this.#world.fail(`${this.client.name} redeems the code of ${name} twice`)
    if (accepted === undefined) return
    const session: AppSession = {
      ...tokensIn(accepted),
      holder,
      name,
      app: this,
      state: this.#ledger.sessionOf(name),
      era,
      unanswered: new Set(),
      isExtended: false,
    }
    // A code that is used again ends the session, and nobody knows when a request without an answer is carried out.
    if (replies.length > 1) this.#mayEnd(session)
    this.#world.apps!.add(session)
  }

  /**
   * Returns the answers that have this status. Of a single request, only a server that is in trouble may say something
   * else. Nothing is known after a failover.
   */
  #decided(what: string, replies: readonly Reply[], wanted: { status: number; era: number }): NonNullable<Reply>[] {
    if (replies.length === 1) {
      const reply = this.#expected(what, replies[0]!, wanted)
      return reply === null ? [] : [reply]
    }
    for (const reply of replies) this.#told(what, reply)
    return replies.filter(
      (reply): reply is NonNullable<Reply> => reply?.status === wanted.status && wanted.era === this.#ledger.era,
    )
  }

  /** The same of one request; null if it has another answer. */
  #expected(what: string, reply: Reply, { status, era }: { status: number; era: number }): Reply {
    this.#told(what, reply)
    if (era !== this.#ledger.era) return null
    if (reply?.status === status) return reply
    if (!isBusy(reply)) this.#world.fail(`${this.client.name} may not ${what}: ${JSON.stringify(reply!.body)}`)
    return null
  }

  #told(what: string, reply: Reply): void {
    const how = reply === null ? 'never learns of' : `is told ${reply.status}:`
    this.#note(
      `${how} ${what}${reply !== null && 'error' in reply.body ? ` (${String(reply.body['error_description'] ?? reply.body['message'])})` : ''}`,
    )
    if (reply !== null && reply.status >= 500 && reply.status !== 503)
      this.#world.fail(`a node answers ${reply.status} to ${what}: ${JSON.stringify(reply.body)}`)
  }

  /** Look at the session, now and then twice with the same proof at the same time. */
  async look(session: AppSession): Promise<void> {
    const { world } = this.client
    const { timeline } = world
    const nsid = 'com.atproto.server.getSession'
    const from = timeline.now
    const { era } = this.#ledger
    if (timeline.happens(0.6)) {
      const node = this.client.node()
      return this.#judge(session, `look at ${session.name}`, from, await session.app.call(node, nsid, session, {}))
    }
    const { accessToken } = session
    const proof = session.app.#proof('GET', `/xrpc/${nsid}`, accessToken)
    const nodes = [this.client.node(), this.client.node()]
    const starts = nodes.map(({ starts }) => starts)
    const { crashes } = world.server
    const replies = await Promise.all(nodes.map((node) => session.app.#send(node, nsid, accessToken, proof, {})))
    for (const reply of replies) this.#told(`look at ${session.name} with one proof for two requests`, reply)
    // A server on SQLite has them in memory, and PostgreSQL in a table that a crash empties.
    const isRemembered =
      world.disk === null ? world.server.crashes === crashes : nodes.every((node, i) => node.starts === starts[i])
    if (era === this.#ledger.era && isRemembered && replies.every((reply) => reply?.status === 200))
      world.fail(`${this.client.name} uses a proof twice`)
  }

  /** Whether an answer is true of the session. */
  #judge(session: AppSession, what: string, from: number, reply: Reply): void {
    this.#told(what, reply)
    if (isBusy(reply)) return
    const { status, body } = reply!
    if (status === 200 && !this.mayBe(session, 'live', from))
      this.#world.fail(`${this.client.name} may ${what}, although ${session.name} has ended`)
    if (status !== 200 && status < 500 && !this.isEnded(session, body, from))
      this.#world.fail(`${this.client.name} may not ${what}: ${JSON.stringify(body)}`)
  }

  /** Whether the session can be refused in this way. */
  isEnded(session: AppSession, { error }: Record<string, unknown>, from: number): boolean {
    return (
      ['invalid_token', 'InvalidToken', 'ExpiredToken', 'invalid_grant'].includes(String(error)) &&
      this.mayBe(session, 'ended', from)
    )
  }

  /** Exchange the refresh token, twice at the same time now and then. */
  async extend(session: AppSession): Promise<void> {
    const { timeline, serving } = this.#world
    // What is sent to nobody would count as sent.
    if (session.isExtended || serving.length === 0) return
    session.isExtended = true
    const { refreshToken } = session
    // The exchange of an earlier token, once it is carried out, ends the session.
    if ([...session.unanswered].some((token) => token !== refreshToken)) this.#mayEnd(session)
    const fields = { grant_type: 'refresh_token', refresh_token: refreshToken }
    const successors = new Set<string>()
    const once = async () => {
      const from = timeline.now
      const node = this.client.node()
      const reply = await session.app.#post(node, '/oauth/token', fields)
      this.#judge(session, `extend ${session.name}`, from, reply)
      if (this.client.told(node, reply) === 'unknown') session.unanswered.add(refreshToken)
      if (reply?.status !== 200) return
      const tokens = tokensIn(reply)
      successors.add(tokens.refreshToken)
      Object.assign(session, tokens)
    }
    const { era } = this.#ledger
    await this.#onceOrTwice(once)
    if (era === this.#ledger.era && successors.size > 1)
      this.#world.fail(`${this.client.name} gets two refresh tokens for one of ${session.name}`)
    session.isExtended = false
  }

  /** Revoke the refresh token or the access token. */
  async revoke(session: AppSession): Promise<void> {
    const { timeline } = this.#world
    const setting = session.state.begin('ended', timeline.now)
    const token = timeline.happens(0.5) ? session.refreshToken : session.accessToken
    const node = this.client.node()
    const reply = await session.app.#post(node, '/oauth/revoke', { token })
    const what = `revoke ${session.name}`
    this.#told(what, reply)
    const told = this.client.told(node, reply)
    session.state.end(setting, told, timeline.now)
    if (told === 'refused' && !isBusy(reply))
      this.#world.fail(`${this.client.name} may not ${what}: ${JSON.stringify(reply!.body)}`)
  }
}

const tokensIn = ({ body }: NonNullable<Reply>): Pick<AppSession, 'accessToken' | 'refreshToken'> => ({
  accessToken: String(body['access_token']),
  refreshToken: String(body['refresh_token']),
})

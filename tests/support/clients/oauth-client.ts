/** An OAuth client made by hand, which does everything right and lets a test do any one thing wrong. */
import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'
import { request, type Answer } from './http.ts'
import type { TestPds } from '../servers/pds.ts'

export interface Key {
  privateKey: KeyObject
  jwk: Record<string, unknown>
}

export function newKey(): Key {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { privateKey, jwk: publicKey.export({ format: 'jwk' }) as Record<string, unknown> }
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const hashOf = (text: string) => createHash('sha256').update(text).digest('base64url')

export function signJwt(key: Key, header: object, claims: object): string {
  const signed = `${encode({ alg: 'ES256', ...header })}.${encode(claims)}`
  return `${signed}.${sign('sha256', Buffer.from(signed), { key: key.privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

export const REDIRECT_URI = 'http://127.0.0.1:9/callback'

export const loopbackClientId = (scope = 'atproto transition:generic', redirectUri = REDIRECT_URI): string =>
  `http://localhost/?${new URLSearchParams({ scope, redirect_uri: redirectUri })}`

export interface Tokens {
  access_token: string
  refresh_token: string
  scope: string
  sub: string
  expires_in: number
}

/** Changes to one request: to its parameters, to the claims of its proof, or another key. */
export interface Misstep {
  parameters?: Record<string, string | undefined>
  proof?: Record<string, unknown>
  key?: Key
  /** Send this proof as it is; null sends none. */
  rawProof?: string | null
}

export class OAuthClient {
  key = newKey()
  /** The last nonce that the server has handed out. */
  nonce: string | undefined
  verifier = randomBytes(32).toString('base64url')
  lastProof = ''

  constructor(
    /** `publicUrl` where the server is reached under another address than the one it is known by. */
    readonly pds: { url: string; clock: Pick<TestPds['clock'], 'now'>; publicUrl?: string },
    readonly clientId = loopbackClientId(),
    /** Of a confidential client: its key, and how it is called. */
    readonly assertion: { key: Key; kid: string } | null = null,
    readonly redirectUri = REDIRECT_URI,
  ) {}

  get publicUrl(): string {
    return this.pds.publicUrl ?? this.pds.url
  }

  get nowSecs(): number {
    return Math.floor(this.pds.clock.now() / 1000)
  }

  proof(method: string, url: string, changes: Record<string, unknown> = {}, key = this.key): string {
    const claims = {
      jti: randomBytes(8).toString('hex'),
      htm: method,
      htu: url,
      iat: this.nowSecs,
      nonce: this.nonce,
      ...changes,
    }
    return signJwt(key, { typ: 'dpop+jwt', jwk: key.jwk }, claims)
  }

  clientAssertion(changes: Record<string, unknown> = {}, { key, kid } = this.assertion!): string {
    const claims = {
      iss: this.clientId,
      sub: this.clientId,
      aud: this.publicUrl,
      jti: randomBytes(8).toString('hex'),
      iat: this.nowSecs,
      ...changes,
    }
    return signJwt(key, { kid, typ: 'JWT' }, claims)
  }

  authentication(): Record<string, string> {
    if (this.assertion === null) return { client_id: this.clientId }
    return {
      client_id: this.clientId,
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: this.clientAssertion(),
    }
  }

  /** Post once; whatever nonce comes back is used next. */
  async postOnce(
    path: string,
    parameters: Record<string, string>,
    { parameters: changed = {}, proof = {}, key, rawProof }: Misstep = {},
  ): Promise<Answer> {
    const url = `${this.pds.url}${path}`
    const form = Object.entries({ ...parameters, ...changed }).filter(
      (entry): entry is [string, string] => entry[1] !== undefined,
    )
    this.lastProof = rawProof ?? this.proof('POST', `${this.publicUrl}${path}`, proof, key)
    const headers: Record<string, string> = {
      'content-type': 'application/x-www-form-urlencoded',
      ...(rawProof === null ? {} : { dpop: this.lastProof }),
    }
    const answer = await request(url, { method: 'POST', headers, body: new URLSearchParams(form).toString() })
    this.nonce = answer.headers.get('dpop-nonce') ?? this.nonce
    return answer
  }

  /** Post, and once more with the nonce that was asked for. */
  async post(path: string, parameters: Record<string, string>, misstep: Misstep = {}): Promise<Answer> {
    const answer = await this.postOnce(path, parameters, misstep)
    if (answer.body.error !== 'use_dpop_nonce') return answer
    return this.postOnce(path, { ...parameters, ...this.authentication() }, misstep)
  }

  push(changes: Record<string, string | undefined> = {}, misstep: Misstep = {}): Promise<Answer> {
    const parameters = {
      ...this.authentication(),
      response_type: 'code',
      redirect_uri: this.redirectUri,
      code_challenge: hashOf(this.verifier),
      code_challenge_method: 'S256',
      scope: 'atproto transition:generic',
      state: 'some state',
    }
    return this.post('/oauth/par', parameters, { ...misstep, parameters: { ...changes, ...misstep.parameters } })
  }

  async requestUri(changes: Record<string, string | undefined> = {}): Promise<string> {
    const { status, body } = await this.push(changes)
    if (status !== 201) throw new Error(`the request was refused: ${JSON.stringify(body)}`)
    return body.request_uri
  }

  authorizeUrl(requestUri: string): string {
    return `${this.pds.url}/oauth/authorize?${new URLSearchParams({ client_id: this.clientId, request_uri: requestUri })}`
  }

  /** Fill in the page as a person would who allows everything, but for `changes`. */
  async decide(
    requestUri: string,
    person: { identifier: string; password: string },
    changes: Record<string, string | string[]> = {},
  ): Promise<Answer> {
    const { body } = await request(this.authorizeUrl(requestUri))
    const form = new URLSearchParams({ ...hiddenFields(body), ...person, action: 'approve' })
    for (const scope of tickedScopes(body)) form.append('granted_scope', scope)
    for (const [name, value] of Object.entries(changes)) {
      form.delete(name)
      for (const one of [value].flat()) form.append(name, one)
    }
    return request(`${this.pds.url}/oauth/authorize`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: form.toString(),
    })
  }

  /** From nothing to a code. */
  async code(
    person: { identifier: string; password: string },
    changes: Record<string, string | undefined> = {},
  ): Promise<string> {
    const answer = await this.decide(await this.requestUri(changes), person)
    const code = answerOf(answer).get('code')
    if (code === null) throw new Error(`no code: ${answer.status} ${answer.headers.get('location') ?? answer.body}`)
    return code
  }

  redeem(code: string, misstep: Misstep = {}): Promise<Answer> {
    const parameters = {
      ...this.authentication(),
      grant_type: 'authorization_code',
      code,
      redirect_uri: this.redirectUri,
      code_verifier: this.verifier,
    }
    return this.post('/oauth/token', parameters, misstep)
  }

  refresh(refreshToken: string, misstep: Misstep = {}): Promise<Answer> {
    return this.post(
      '/oauth/token',
      { ...this.authentication(), grant_type: 'refresh_token', refresh_token: refreshToken },
      misstep,
    )
  }

  revoke(token: string, misstep: Misstep = {}): Promise<Answer> {
    return this.post('/oauth/revoke', { ...this.authentication(), token }, misstep)
  }

  /** From nothing to tokens. */
  async signIn(
    person: { identifier: string; password: string },
    changes: Record<string, string | undefined> = {},
  ): Promise<Tokens> {
    const { status, body } = await this.redeem(await this.code(person, changes))
    if (status !== 200) throw new Error(`no tokens: ${JSON.stringify(body)}`)
    return body
  }

  /** Call a method, or a path, once, with a proof for this token. */
  async callOnce(
    accessToken: string,
    nsid: string,
    { proof = {}, key, rawProof }: Misstep = {},
    init: Parameters<typeof request>[1] = {},
  ): Promise<Answer> {
    const path = nsid.startsWith('/') ? nsid : `/xrpc/${nsid}`
    const url = `${this.pds.url}${path}`
    const method = init.method ?? (init.json === undefined ? 'GET' : 'POST')
    this.lastProof =
      rawProof ?? this.proof(method, `${this.publicUrl}${path}`, { ath: hashOf(accessToken), ...proof }, key)
    const own: Record<string, string> = {
      authorization: `DPoP ${accessToken}`,
      ...(rawProof === null ? {} : { dpop: this.lastProof }),
    }
    const answer = await request(url, {
      ...init,
      headers: { ...(init.headers as Record<string, string> | undefined), ...own },
    })
    this.nonce = answer.headers.get('dpop-nonce') ?? this.nonce
    return answer
  }

  async call(
    accessToken: string,
    nsid: string,
    misstep: Misstep = {},
    init: Parameters<typeof request>[1] = {},
  ): Promise<Answer> {
    const answer = await this.callOnce(accessToken, nsid, misstep, init)
    return answer.body.error === 'use_dpop_nonce' ? this.callOnce(accessToken, nsid, misstep, init) : answer
  }
}

/** What the redirect tells the client, wherever it stands. */
export function answerOf({ headers }: Answer): URLSearchParams {
  const url = new URL(headers.get('location') ?? 'none:')
  return new URLSearchParams(url.hash === '' ? url.search : url.hash.slice(1))
}

const unescape = (text: string) =>
  text
    .replaceAll('&quot;', '"')
    .replaceAll('&#x27;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')

export function hiddenFields(page: string): Record<string, string> {
  return Object.fromEntries(
    [...page.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)].map(([, name, value]) => [
      name!,
      unescape(value!),
    ]),
  )
}

export const tickedScopes = (page: string): string[] =>
  [...page.matchAll(/name="granted_scope" value="([^"]*)" checked/g)].map(([, value]) => unescape(value!))

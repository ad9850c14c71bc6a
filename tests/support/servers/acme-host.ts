/**
 * A small certificate authority (RFC 8555) on loopback. It verifies signatures, nonces, addresses and requests with
 * libraries of others, proves names by asking the server, signs with a key of its own, and misbehaves if told to.
 */
import { Resolver } from 'node:dns/promises'
import { request } from 'node:http'
import * as x509 from '@peculiar/x509'
import { calculateJwkThumbprint, flattenedVerify, importJWK, type FlattenedJWSInput, type JWK } from 'jose'
import 'reflect-metadata'
import { serverCertificate, serverKey } from '../certificates.ts'

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const DAY_MILLIS = 86_400_000

/**
 * What it does wrong. `down`: a gateway answers in its place. `silent`: it takes requests and answers none.
 * `rateLimited`: it refuses orders. `badNonce`: it refuses the first request to each address. `badNonces`: it refuses
 * every request. `neverReady`: proofs are never checked. `endless`: bodies do not end. `malformed`: orders are not what
 * they should be. `misplaced`: orders name a proof at an address that is none. `cutChain`: chains end in the middle of
 * a certificate. `lostOrders`: it fails whenever it is asked for an order. `noReplacing`: it knows no certificate that
 * is to be replaced. `years`: what it limits, it limits for years. `atOnce`: what it limits, it limits for no time.
 */
export type AcmeFault =
  | 'down'
  | 'silent'
  | 'rateLimited'
  | 'badNonce'
  | 'badNonces'
  | 'neverReady'
  | 'endless'
  | 'malformed'
  | 'misplaced'
  | 'cutChain'
  | 'lostOrders'
  | 'noReplacing'
  | 'years'
  | 'atOnce'

export interface AcmeHost extends AsyncDisposable {
  readonly directoryUrl: string
  /** The certificate of the authority that signs, in PEM. */
  readonly root: string
  fault: AcmeFault | null
  /** Where names are proven, on loopback. */
  httpPort: number
  dnsPort: number
  /** Of the certificates that it signs. */
  lifeMillis: number
  /** What it advises about renewals; null: nothing. */
  renewal: { start: number; end: number } | null
  /** The names of each order, in order of arrival. */
  readonly orders: string[][]
  /** The certificates that were to be replaced by those orders. */
  readonly replaced: string[]
  /** `METHOD path` of all requests. */
  readonly requests: string[]
  /** Names whose proofs are refused. */
  readonly refused: Set<string>
  /** Names whose orders are not answered. */
  readonly held: Set<string>
  /** Names for which it has given as many certificates as it gives. */
  readonly limited: Set<string>
  /** Begins the path of each address but that of the directory. At the others, there is nothing. */
  prefix: string
}

interface Authorization {
  name: string
  token: string
  status: string
  error?: object
}

interface Order {
  status: string
  names: string[]
  authorizations: number[]
  chain: string | null
  account: string
}

class Problem extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    detail: string,
    readonly retryAfterSecs: number | null = null,
  ) {
    super(detail)
  }
}

export async function startAcmeHost(): Promise<AcmeHost> {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=ACME of the tests',
    keys,
    notBefore: new Date(Date.now() - DAY_MILLIS),
    notAfter: new Date(Date.now() + 10_000 * DAY_MILLIS),
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  const nonces = new Set<string>()
  const refusedNonces = new Set<string>()
  const accounts = new Map<string, JWK>()
  const authorizations: Authorization[] = []
  const orders: Order[] = []

  const fresh = () => {
    const nonce = crypto.randomUUID().replaceAll('-', '')
    nonces.add(nonce)
    return nonce
  }

  /** Returns what was signed, by which account, and its key. */
  async function verified(incoming: Request): Promise<{ account: string; jwk: JWK; payload: any }> {
    if (incoming.headers.get('content-type') !== 'application/jose+json')
      throw new Problem(415, 'malformed', 'not application/jose+json')
    const jws = (await incoming.json()) as FlattenedJWSInput
    const header = JSON.parse(Buffer.from(jws.protected!, 'base64url').toString()) as {
      jwk?: JWK
      kid?: string
      nonce: string
      url: string
      alg: string
    }
    if (header.url !== incoming.url) throw new Problem(403, 'unauthorized', `signed for ${header.url}`)
    if ((header.jwk === undefined) === (header.kid === undefined))
      throw new Problem(400, 'malformed', 'either jwk or kid must name the key')
    const jwk = header.jwk ?? accounts.get(header.kid!)
    if (jwk === undefined) throw new Problem(400, 'accountDoesNotExist', 'no such account')
    const { payload } = await flattenedVerify(jws, await importJWK(jwk, 'ES256'), { algorithms: ['ES256'] })
    const isFirst = host.fault === 'badNonce' && !refusedNonces.has(header.url)
    if (isFirst) refusedNonces.add(header.url)
    if (!nonces.delete(header.nonce) || isFirst || host.fault === 'badNonces')
      throw new Problem(400, 'badNonce', 'an unknown nonce')
    const text = Buffer.from(payload).toString()
    const account = header.kid ?? `${base}${host.prefix}/account/${await calculateJwkThumbprint(jwk)}`
    if (header.kid === undefined) accounts.set(account, jwk)
    return { account, jwk, payload: text === '' ? null : JSON.parse(text) }
  }

  async function prove(authorization: Authorization, type: string, jwk: JWK): Promise<void> {
    const { name: asked, token } = authorization
    // A wildcard is proven at its domain.
    const name = asked.replace(/^\*\./, '')
    const expected = `${token}.${await calculateJwkThumbprint(jwk)}`
    const digest = new Bun.CryptoHasher('sha256').update(expected).digest('base64url')
    const found =
      type === 'http-01'
        ? await overHttp(host.httpPort, name, `/.well-known/acme-challenge/${token}`)
        : await overDns(host.dnsPort, `_acme-challenge.${name}`)
    const isProven = found.includes(type === 'http-01' ? expected : digest) && !host.refused.has(asked)
    authorization.status = isProven ? 'valid' : 'invalid'
    if (!isProven) authorization.error = { type: 'urn:ietf:params:acme:error:unauthorized', detail: 'not proven' }
  }

  const orderOf = (id: number) => {
    const order = orders[id]!
    const states = order.authorizations.map((each) => authorizations[each]!.status)
    if (states.includes('invalid')) order.status = 'invalid'
    else if (order.status === 'pending' && states.every((each) => each === 'valid')) order.status = 'ready'
    return {
      status: order.status,
      identifiers: order.names.map((value) => ({ type: 'dns', value })),
      authorizations: order.authorizations.map((each) => `${base}${host.prefix}/authorization/${each}`),
      finalize: `${base}${host.prefix}/finalize/${id}`,
      ...(order.chain !== null && { certificate: `${base}${host.prefix}/certificate/${id}` }),
    }
  }

  const authorizationOf = (id: number) => {
    const { name, token, status, error } = authorizations[id]!
    const types = name.startsWith('*.') ? ['dns-01'] : ['http-01', 'dns-01']
    return {
      status,
      identifier: { type: 'dns', value: name.replace(/^\*\./, '') },
      challenges: types.map((type) => ({
        type,
        status,
        token,
        url: `${base}${host.prefix}/challenge/${id}/${type}`,
        error,
      })),
    }
  }

  async function sign(order: Order, csr: string): Promise<string> {
    const asked = new x509.Pkcs10CertificateRequest(Buffer.from(csr, 'base64url'))
    if (!(await asked.verify())) throw new Problem(400, 'badCSR', 'the signature is wrong')
    const extension = asked.getExtension('2.5.29.17') as x509.SubjectAlternativeNameExtension
    const names = extension.names.toJSON().map(({ value }) => value)
    if (names.toSorted().join() !== order.names.toSorted().join()) throw new Problem(400, 'badCSR', 'other names')
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('hex'),
      issuer: root.subject,
      notBefore: new Date(Date.now() - 60_000),
      notAfter: new Date(Date.now() + host.lifeMillis),
      signingKey: keys.privateKey,
      publicKey: asked.publicKey,
      signingAlgorithm: ALGORITHM,
      extensions: [
        new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: 'dns', value }))),
        await x509.AuthorityKeyIdentifierExtension.create(keys.publicKey),
      ],
    })
    return `${certificate.toString('pem')}\n${root.toString('pem')}\n`
  }

  const json = (value: object, headers: Record<string, string> = {}, status = 200) =>
    Response.json(value, { status, headers })
  /** So that clients in tests do not wait. */
  const soon = { 'retry-after': '0' }

  const actions: Record<string, (incoming: Request, id: number, kind: string) => Promise<Response> | Response> = {
    directory: () => {
      const at = (name: string) => `${base}${host.prefix}/${name}`
      return json({
        newNonce: at('nonce'),
        newAccount: at('new-account'),
        newOrder: at('new-order'),
        renewalInfo: at('renewal'),
        meta: { termsOfService: at('terms') },
      })
    },
    nonce: () => new Response(null),
    async 'new-account'(incoming) {
      const { account, payload } = await verified(incoming)
      if (payload.termsOfServiceAgreed !== true) throw new Problem(400, 'userActionRequired', 'agree to the terms')
      return json({ status: 'valid' }, { location: account }, 201)
    },
    async 'new-order'(incoming) {
      const { account, payload } = await verified(incoming)
      const names = (payload.identifiers as { value: string }[]).map(({ value }) => value)
      const waitSecs = host.fault === 'years' ? 999_999_999 : host.fault === 'atOnce' ? 0 : 7200
      if (host.fault === 'rateLimited' || names.some((name) => host.limited.has(name)))
        throw new Problem(429, 'rateLimited', 'too many certificates', waitSecs)
      if (host.fault === 'noReplacing' && payload.replaces !== undefined)
        throw new Problem(404, 'malformed', 'the certificate to replace is unknown')
      host.orders.push(names)
      if (names.some((name) => host.held.has(name))) return new Promise(() => undefined)
      if (payload.replaces !== undefined) host.replaced.push(payload.replaces as string)
      const each = names.map((name) => {
        const token = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')
        return authorizations.push({ name, token, status: 'pending' }) - 1
      })
      const id = orders.push({ status: 'pending', names, authorizations: each, chain: null, account }) - 1
      const oddities = { malformed: { status: 'wonderful' }, misplaced: { authorizations: ['https://['] } }
      const order = { ...orderOf(id), ...oddities[host.fault as keyof typeof oddities] }
      return json(order, { location: `${base}${host.prefix}/order/${id}`, ...soon }, 201)
    },
    async order(incoming, id) {
      const { account } = await verified(incoming)
      if (host.fault === 'lostOrders') throw new Problem(500, 'serverInternal', 'no order can be read')
      if (orders[id]?.account !== account) throw new Problem(404, 'malformed', 'no such order')
      return json(orderOf(id), soon)
    },
    async authorization(incoming, id) {
      await verified(incoming)
      return json(authorizationOf(id))
    },
    async challenge(incoming, id, type) {
      const { jwk } = await verified(incoming)
      if (host.fault !== 'neverReady') await prove(authorizations[id]!, type, jwk)
      return json(authorizationOf(id).challenges[0]!)
    },
    async finalize(incoming, id) {
      const { payload } = await verified(incoming)
      const order = orders[id]!
      if (orderOf(id).status !== 'ready') throw new Problem(403, 'orderNotReady', 'not proven yet')
      order.chain = await sign(order, payload.csr as string)
      order.status = 'valid'
      return json(orderOf(id), soon)
    },
    async certificate(incoming, id) {
      await verified(incoming)
      const chain = orders[id]!.chain!
      return new Response(host.fault === 'cutChain' ? chain.slice(0, -100) : chain, {
        headers: { 'content-type': 'application/pem-certificate-chain' },
      })
    },
    renewal() {
      if (host.renewal === null) throw new Problem(404, 'malformed', 'no such certificate')
      const [start, end] = [host.renewal.start, host.renewal.end].map((millis) => new Date(millis).toISOString())
      return json({ suggestedWindow: { start, end } }, { 'retry-after': '21600' })
    },
  }
  async function answer(incoming: Request): Promise<Response> {
    const path = new URL(incoming.url).pathname
    const isThere = path === '/directory' || path.startsWith(`${host.prefix}/`)
    const [, action = '', id = '', kind = ''] = path.replace(host.prefix, '').split('/')
    host.requests.push(`${incoming.method} /${action}`)
    if (!isThere) return new Response('<h1>404 Not Found</h1>', { status: 404 })
    if (host.fault === 'down') return new Response('<h1>502 Bad Gateway</h1>', { status: 502 })
    if (host.fault === 'silent') return new Promise(() => undefined)
    if (host.fault === 'endless') return endless()
    const response = await Promise.resolve(actions[action]!(incoming, Number(id), kind)).catch(problemOf)
    response.headers.set('replay-nonce', fresh())
    return response
  }

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    tls: { cert: serverCertificate, key: serverKey },
    fetch: (incoming) => answer(incoming).catch(problemOf),
  })
  const base = `https://localhost:${server.port}`
  const host: AcmeHost = {
    directoryUrl: `${base}/directory`,
    root: root.toString('pem'),
    fault: null,
    httpPort: 0,
    dnsPort: 0,
    lifeMillis: 90 * DAY_MILLIS,
    renewal: null,
    orders: [],
    replaced: [],
    requests: [],
    refused: new Set(),
    held: new Set(),
    limited: new Set(),
    prefix: '',
    async [Symbol.asyncDispose]() {
      await server.stop(true)
    },
  }
  return host
}

function problemOf(error: unknown): Response {
  if (!(error instanceof Problem)) throw error
  const body = { type: `urn:ietf:params:acme:error:${error.type}`, detail: error.message }
  const headers = error.retryAfterSecs === null ? {} : { 'retry-after': String(error.retryAfterSecs) }
  return Response.json(body, { status: error.status, headers })
}

/** Returns the answer of the server to a request for another name; empty if there is none. */
function overHttp(port: number, host: string, path: string): Promise<string[]> {
  const { promise, resolve } = Promise.withResolvers<string[]>()
  request({ host: '127.0.0.1', port, path, headers: { host } }, (response) => {
    let text = ''
    response.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    response.on('end', () => resolve(response.statusCode === 200 ? [text] : []))
  })
    .on('error', () => resolve([]))
    .end()
  return promise
}

async function overDns(port: number, name: string): Promise<string[]> {
  const resolver = new Resolver({ tries: 1, timeout: 5000 })
  resolver.setServers([`127.0.0.1:${port}`])
  try {
    return (await resolver.resolveTxt(name)).map((parts) => parts.join(''))
  } catch {
    return [] // there is no such record
  }
}

const ENDLESS_CHUNK_BYTES = 64 * 1024

const endless = () =>
  new Response(
    new ReadableStream({
      pull(controller) {
        controller.enqueue(new Uint8Array(ENDLESS_CHUNK_BYTES))
      },
    }),
  )

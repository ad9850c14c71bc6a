/** What holds for every method alike: verbs, parameters, bodies, order of checks, headers. */
import { describe, expect, test } from 'bun:test'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { methods, type MethodName } from '../../../src/protocol/lexicons/lexicons.ts'
import { bearer, raw, request, type Answer } from '../../support/clients/http.ts'
import { openStage, operator, subjectsOf } from './callers.ts'
import { ANYBODY, servedMethods, type Served } from './served-methods.ts'
import { setUp } from '../../support/set-up.ts'

const stage = setUp(openStage)

const table = servedMethods(subjectsOf())
const actual = ({ nsid }: Served): Served =>
  servedMethods(subjectsOf(stage.alice.did)).find((served) => served.nsid === nsid)!
const encodingOf = ({ nsid }: Served) => methods().get(nsid as MethodName)!.inputEncoding

const url = (path: string) => `${stage.pds.url}/xrpc/${path}`
const pathOf = ({ nsid, query }: Served) => (query === undefined ? nsid : `${nsid}?${new URLSearchParams(query)}`)
/** Headers of somebody whom the method is for. */
const welcome = ({ callers, nsid }: Served): Record<string, string> => {
  const kind = (['F', 'R', 'B'] as const).find((one) => callers.includes(one)) ?? '-'
  return callers === ANYBODY || callers.startsWith('-') ? {} : stage.headers(kind, nsid)
}
const post = (
  served: Served,
  body: string | Uint8Array<ArrayBuffer> | undefined,
  headers: Record<string, string> = {},
) => request(url(pathOf(served)), { method: 'POST', body, headers: { ...welcome(served), ...headers } })

const refused = ({ status, body }: Answer) => ({ status, error: body.error, message: body.message })
const invalid = (message: string | RegExp) => ({
  status: 400,
  error: 'InvalidRequest',
  message: message instanceof RegExp ? expect.stringMatching(message) : message,
})
const json = { 'content-type': 'application/json' }

const named = (of: readonly Served[]) => of.map((served) => [served.nsid, served] as const)
const queries = table.filter(({ verb }) => verb === 'GET')
const procedures = table.filter(({ verb }) => verb === 'POST')
const withJson = procedures.filter((served) => encodingOf(served) === 'application/json')
const withoutInput = procedures.filter((served) => encodingOf(served) === null)

describe('verbs', () => {
  test.each(named(table))('%s is called with its own', async (nsid, { verb }) => {
    const wrong = verb === 'GET' ? 'POST' : 'GET'
    expect(refused(await request(url(nsid), { method: wrong }))).toEqual(
      invalid(`Incorrect HTTP method (${wrong}) expected ${verb}`),
    )
    for (const method of ['PUT', 'DELETE', 'PATCH'])
      expect(refused(await request(url(nsid), { method }))).toEqual(invalid('XRPC requests only supports GET and POST'))
  })

  test('a path is an NSID, with one slash after it at most', async () => {
    for (const path of [
      'x',
      'com.example',
      'com.example.9x',
      'com..example.get',
      'com.example.get/more',
      'com.atproto.server.describeServer//',
      '%00',
      'com.atproto.server.describeServer%2F',
    ])
      expect({ path, ...refused(await request(url(path), { headers: bearer(stage.alice.accessJwt) })) }).toEqual({
        path,
        ...invalid('invalid xrpc path'),
      })
    expect((await request(url('com.atproto.server.describeServer/'))).status).toBe(200)
  })

  test('names of methods are matched to the letter', async () => {
    expect((await request(url('com.atproto.server.DescribeServer'))).body.error).toBe('AuthMissing')
  })
})

describe('parameters', () => {
  const withQuery = queries.filter(({ query = {} }) => Object.keys(query).length > 0)

  test.each(named(withQuery))('%s checks them before it asks who calls', async (nsid, placeholder) => {
    const { query } = actual(placeholder)
    const required = Object.keys(query!)
    const repeated = new URLSearchParams([...Object.entries(query!), ...Object.entries(query!)])
    const answer = await request(url(`${nsid}?${repeated}`))
    const isList = required.some((name) => ['dids', 'cids', 'actors'].includes(name)) && required.length === 1
    // Preferences take a parameter that their lexicon does not know.
    if (isList || nsid === 'app.bsky.actor.getPreferences') return
    expect(refused(answer)).toEqual(invalid(new RegExp(`^Invalid ${nsid} params: `)))
    for (const name of required) {
      const { [name]: _, ...rest } = query!
      const missing = await request(url(`${nsid}?${new URLSearchParams(rest)}`))
      // Those of a query are not all required.
      if (missing.status === 400 && missing.body.error === 'InvalidRequest')
        expect(missing.body.message).toMatch(/^Invalid .* params: |^(Must provide|No provided|Either)/)
    }
  })

  const rows: [query: string, status: number, why: string][] = [
    ['limit=10', 200, 'a number in its range'],
    ['limit=', 200, 'an empty value is none'],
    ['cursor=', 200, 'an empty value is none'],
    ['reverse=true', 200, 'a boolean'],
    ['unknown=x&__proto__=y&constructor=z', 200, 'what nobody asks for is no fault'],
    ['limit=0', 400, 'below the minimum'],
    ['limit=101', 400, 'above the maximum'],
    ['limit=ten', 400, 'no number'],
    ['limit=1.5', 400, 'no integer'],
    ['limit=1e2', 400, 'no digits'],
    ['limit=0x10', 400, 'no digits'],
    ['limit=99999999999999999999999', 400, 'huge'],
    ['limit=10&limit=10', 400, 'repeated'],
    ['limit[]=10', 200, 'a name nobody knows'],
    ['reverse=1', 400, 'no boolean'],
    ['reverse=True', 400, 'no boolean'],
    ['reverse=yes', 400, 'no boolean'],
  ]
  test.each(rows)('?%s answers %i: %s', async (query, status) => {
    const answer = await request(
      url(`com.atproto.repo.listRecords?repo=${stage.alice.did}&collection=app.bsky.feed.post&${query}`),
    )
    expect(answer.status).toBe(status)
    if (status === 400) expect(refused(answer)).toEqual(invalid(/^Invalid com.atproto.repo.listRecords params: /))
  })

  const formats: [path: string, string][] = [
    ['com.atproto.sync.getRepo?did=nonsense', 'did'],
    ['com.atproto.sync.getRepo?did=did:plc:%00', 'did'],
    ['com.atproto.sync.getRepo?did=%ff%fe', 'did'],
    ['com.atproto.sync.getBlob?did=did:plc:abc&cid=nonsense', 'cid'],
    ['com.atproto.sync.getBlocks?did=did:plc:abc&cids=nonsense', 'cid'],
    ['com.atproto.sync.getRepo?did=did:plc:abc&since=nonsense', 'tid'],
    ['com.atproto.sync.getRecord?did=did:plc:abc&collection=nonsense&rkey=a', 'nsid'],
    ['com.atproto.sync.getRecord?did=did:plc:abc&collection=com.example.thing&rkey=a/b', 'record-key'],
    ['com.atproto.identity.resolveHandle?handle=no_handle', 'handle'],
    ['com.atproto.repo.describeRepo?repo=-', 'at-identifier'],
    ['com.atproto.admin.getSubjectStatus?uri=nonsense', 'at-uri'],
  ]
  test.each(formats)('%s is no %s', async (path) => {
    expect(refused(await request(url(path)))).toEqual(invalid(/^Invalid .* params: /))
  })
})

describe('bodies', () => {
  test.each(named(withJson))('%s takes JSON and says what is wrong with anything else', async (_, placeholder) => {
    const served = actual(placeholder)
    expect(refused(await raw400(served, 'Connection: close\r\n'))).toEqual(
      invalid('A request body is expected but none was provided'),
    )
    expect(refused(await raw400(served, 'Connection: close\r\nContent-Length: 2\r\n', '{}'))).toEqual(
      invalid('Request encoding (Content-Type) required but not provided'),
    )
    expect(refused(await raw400(served, 'Connection: close\r\nContent-Type:\r\nContent-Length: 2\r\n', '{}'))).toEqual(
      invalid('Request encoding (Content-Type) required but not provided'),
    )
    expect(refused(await post(served, 'a=b', { 'content-type': 'application/x-www-form-urlencoded' }))).toEqual(
      invalid('Wrong request encoding (Content-Type): application/x-www-form-urlencoded'),
    )
    for (const text of ['{', '{"a":}', "{'a':1}", '{"a":1}}', 'null x', '\u0000', 'null', '1', '"text"', 'true'])
      expect({ text, ...refused(await post(served, text, json)) }).toMatchObject({
        text,
        status: 400,
        error: 'SyntaxError',
      })
    expect(
      refused(await post(served, new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]), json)),
    ).toMatchObject({
      status: 400,
    })
    expect(refused(await post(served, '[]', json))).toMatchObject({ status: 400, error: 'InvalidRequest' })
    expect(refused(await post(served, `{"a":"${'x'.repeat(1_000_001)}"}`, json))).toEqual({
      status: 413,
      error: 'PayloadTooLargeError',
      message: 'request entity too large',
    })
    expect(refused(await post(served, '{}', { ...json, 'content-encoding': 'zstd' }))).toMatchObject({
      status: 415,
      message: 'unsupported content-encoding',
    })
    expect(refused(await post(served, 'no gzip', { ...json, 'content-encoding': 'gzip' }))).toMatchObject({
      status: 400,
    })
  })

  test.each(named(withoutInput))('%s takes none', async (_, placeholder) => {
    const served = actual(placeholder)
    expect(refused(await post(served, '{}', json))).toEqual(
      invalid('A request body was provided when none was expected'),
    )
  })

  test('a body nobody expects is no fault when it is empty', async () => {
    const { status } = await post(
      actual(table.find(({ nsid }) => nsid === 'com.atproto.server.requestEmailConfirmation')!),
      '',
      json,
    )
    expect(status).toBe(200)
  })

  test('an empty body where JSON is expected is an empty object', async () => {
    const served = table.find(({ nsid }) => nsid === 'com.atproto.server.createSession')!
    expect(refused(await post(served, '', { ...json, 'content-length': '0' }))).toMatchObject({
      status: 400,
      error: 'InvalidRequest',
      message: expect.stringContaining('identifier'),
    })
  })

  test('codings are undone, also stacked ones, and the bound is on what comes out', async () => {
    const served = table.find(({ nsid }) => nsid === 'com.atproto.server.reserveSigningKey')!
    const body = Buffer.from('{}')
    for (const [coding, bytes] of [
      ['gzip', gzipSync(body)],
      ['deflate', deflateSync(body)],
      ['br', brotliCompressSync(body)],
      ['gzip, br', brotliCompressSync(gzipSync(body))],
    ] as const)
      expect((await post(served, new Uint8Array(bytes), { ...json, 'content-encoding': coding })).status).toBe(200)
    const bomb = gzipSync(Buffer.from(`{"did":"${' '.repeat(50_000_000)}"}`))
    expect(refused(await post(served, new Uint8Array(bomb), { ...json, 'content-encoding': 'gzip' }))).toMatchObject({
      status: 413,
      error: 'PayloadTooLargeError',
    })
  })

  test.each(['abc', '-1', '1.5', '99999999999999999999'])('a Content-Length of %s is refused', async (length) => {
    const answer = await raw(
      stage.pds.url,
      `POST /xrpc/com.atproto.server.createSession HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n{}`,
    )
    expect(answer).toMatch(/^HTTP\/1\.1 4\d\d/)
  })

  test.each([
    'com.atproto.repo.createRecord',
    'com.atproto.repo.uploadBlob',
    'com.atproto.repo.importRepo',
    'com.atproto.server.createSession',
  ])('half a body of %s harms nobody', async (nsid) => {
    const type = encodingOf({ nsid } as Served) === '*/*' ? 'image/png' : encodingOf({ nsid } as Served)
    await raw(
      stage.pds.url,
      `POST /xrpc/${nsid} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${stage.alice.accessJwt}\r\nContent-Type: ${type}\r\nContent-Length: 1000\r\n\r\n{"half":`,
      30,
    )
    expect((await request(url('_health'))).status).toBe(200)
  })

  /** Through a raw connection: a client adds what we want to leave out. */
  async function raw400(served: Served, headers: string, body = ''): Promise<Answer> {
    const authorization = welcome(served)['authorization']
    const line = authorization === undefined ? '' : `Authorization: ${authorization}\r\n`
    const text = await raw(
      stage.pds.url,
      `POST /xrpc/${served.nsid} HTTP/1.1\r\nHost: ${new URL(stage.pds.url).host}\r\n${line}${headers}\r\n${body}`,
    )
    const [head = '', content = ''] = text.split('\r\n\r\n')
    return {
      status: Number(head.split(' ')[1]),
      headers: new Headers(),
      body: JSON.parse(content.slice(content.indexOf('{'), content.lastIndexOf('}') + 1)),
    }
  }
})

describe('answers', () => {
  test.each(named(table.filter(({ callers }) => callers !== ANYBODY)))(
    '%s is private, refused or not',
    async (_, placeholder) => {
      const served = actual(placeholder)
      const init = served.verb === 'POST' ? { json: [] } : {}
      for (const headers of [{}, welcome(served)]) {
        const answer = await request(url(pathOf(served)), { ...init, headers })
        expect({ cache: answer.headers.get('cache-control'), vary: answer.headers.get('vary') }).toMatchObject({
          cache: expect.stringContaining('private'),
          vary: expect.stringContaining('Authorization'),
        })
      }
    },
  )

  test('every refusal has a name and a message, as JSON that any origin may read', async () => {
    for (const path of [
      'com.atproto.server.getSession',
      'com.atproto.sync.getRepo?did=x',
      'nonsense',
      'com.atproto.sync.getRepo?did=did:plc:ewvi7nxzyoun6zhxrhs64oiz',
      'com.atproto.admin.getInviteCodes',
    ]) {
      const { status, headers, body } = await request(url(path))
      expect(status).toBeWithin(400, 500)
      expect(body).toEqual({ error: expect.any(String), message: expect.any(String) })
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
      expect(headers.get('access-control-allow-origin')).toBe('*')
    }
  })

  test('nothing to say is an empty 200 without a type', async () => {
    const { status, headers, body } = await request(url('com.atproto.server.requestEmailConfirmation'), {
      method: 'POST',
      headers: bearer(stage.alice.accessJwt),
    })
    expect({ status, body, type: headers.get('content-type') }).toEqual({ status: 200, body: '', type: null })
  })

  test('HEAD is GET without its body', async () => {
    const [head, get] = [
      await request(url('com.atproto.sync.listRepos'), { method: 'HEAD' }),
      await request(url('com.atproto.sync.listRepos')),
    ]
    expect({ status: head.status, body: head.body, type: head.headers.get('content-type') }).toEqual({
      status: 200,
      body: '',
      type: get.headers.get('content-type'),
    })
  })

  test('JSON that the client has is not sent again', async () => {
    const first = await request(url('com.atproto.server.describeServer'))
    expect(
      (
        await request(url('com.atproto.server.describeServer'), {
          headers: { 'if-none-match': first.headers.get('etag')! },
        })
      ).status,
    ).toBe(304)
  })

  test('archives are packed for who asks', async () => {
    for (let i = 0; i < 8; i++)
      await stage.alice.call('com.atproto.repo.createRecord', {
        json: { repo: stage.alice.did, collection: 'com.example.thing', record: { text: 'so long '.repeat(40) } },
      })
    const response = await fetch(url(`com.atproto.sync.getRepo?did=${stage.alice.did}`), {
      headers: { 'accept-encoding': 'gzip' },
    })
    expect(response.headers.get('content-type')).toBe('application/vnd.ipld.car')
    expect((await response.bytes()).byteLength).toBeGreaterThan(1000)
    const bare = await fetch(url(`com.atproto.sync.getRepo?did=${stage.alice.did}`), {
      headers: { 'accept-encoding': 'identity' },
    })
    expect(bare.headers.get('content-encoding')).toBeNull()
  })

  test('an operator is known by name and password to the letter', async () => {
    const get = (header: string) =>
      request(url(`com.atproto.admin.getAccountInfo?did=${stage.alice.did}`), { headers: { authorization: header } })
    expect((await get(operator.authorization)).status).toBe(200)
    for (const pair of ['admin:wrong', 'Admin:x', 'root:x', 'admin'])
      expect(refused(await get(`Basic ${btoa(pair)}`))).toMatchObject({ status: 401, error: 'AuthenticationRequired' })
  })
})

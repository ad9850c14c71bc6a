/**
 * Input of the wrong type in every place of every method, made from the lexicons: whatever is sent, the answer is one
 * of ours, never a fault of the server, and the server goes on.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { findDefinition, methods, type MethodName } from '../../../src/protocol/lexicons/lexicons.ts'
import type { Schema } from '../../../src/protocol/lexicons/schema.ts'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, raw } from '../../support/clients/http.ts'
import { openStage, operator, subjectsOf } from './callers.ts'
import { EXTENSIONS, servedMethods } from './served-methods.ts'
import { setUp } from '../../support/set-up.ts'

let bob: string
const stage = setUp(openStage)
beforeAll(async () => {
  bob = (await createAccount(stage.pds, 'bob')).did
})

const nsids = [...servedMethods(subjectsOf()).map(({ nsid }) => nsid), ...EXTENSIONS]
const kindOf = (nsid: string) => methods().get(nsid as MethodName)!
const queries = nsids.filter((nsid) => kindOf(nsid).kind === 'query')
const procedures = nsids.filter((nsid) => kindOf(nsid).inputEncoding === 'application/json')
const streams = nsids.filter(
  (nsid) =>
    kindOf(nsid).kind === 'procedure' && (kindOf(nsid).inputEncoding ?? 'application/json') !== 'application/json',
)

const deep = (levels: number, open = '[', close = ']') => open.repeat(levels) + close.repeat(levels)
const LINK = '"bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm"'

/** JSON texts: some have no value that could be written down here. */
const wrongValues = [
  'null', 'true', '0', '-1', '1.5', '9007199254740993', '1e999', '-0',
  '""', '" "', '"x"', `"${'x'.repeat(5000)}"`, '"\\ud800"', '"\\u0000"', '"__proto__"', '"../../etc/passwd"', '"%00"', '"\\u202e"',
  '"did:plc:"', '"did:web:localhost%3A1"', '"did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"', '"at://x"', '"at://did:plc:aaaaaaaaaaaaaaaaaaaaaaaa/app.bsky.feed.post/a"', '"3jzfcijpj2z2a"', LINK, '"9999-99-99T99:99:99Z"',
  '[]', '[null]', '[[]]', '{}', '{"__proto__":{"admin":true}}', '{"constructor":{"prototype":{}}}', '{"toString":null}',
  '{"$type":"__proto__"}', '{"$type":5}', '{"$type":""}', '{"$link":"x"}', `{"$link":${LINK}}`, `{"$link":${LINK},"x":1}`, '{"$bytes":"%"}', '{"$type":"blob"}', `{"$type":"blob","ref":{"$link":${LINK}},"mimeType":"x","size":-1}`,
  deep(300), deep(5000), deep(1000, '{"a":', '1}').replace('1}', '1'.concat('}')),
] // prettier-ignore

/** A password takes long to hash, and one text is as good as another. */
const SLOW = new Set(
  [
    'createSession',
    'createAccount',
    'deleteAccount',
    'resetPassword',
    'updateAccountPassword',
    'createAppPassword',
  ].flatMap((name) => [`com.atproto.server.${name}`, `com.atproto.admin.${name}`]),
)
const valuesFor = (nsid: string) =>
  SLOW.has(nsid)
    ? wrongValues.filter((value) => !value.startsWith('"') || value.length > 1000 || value.includes('ud800'))
    : wrongValues

const wrongParams = ['', ' ', '%00', '%ff%fe', '%', 'null', '-1', '0', '1.5', '1e999', '99999999999999999999', 'true', '__proto__', '[object Object]', 'x'.repeat(5000), '../../etc/passwd', '%F0%9F%92%A9', '%E2%80%AE', 'did:plc:', 'did:web:localhost%253A1', 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa', 'at://x/y/z', 'a&b'] // prettier-ignore

interface Input {
  properties: Record<string, Schema>
  required: readonly string[]
}

const resolved = (schema: Schema, nsid: string): Schema => {
  if (schema.type !== 'ref') return schema
  const ref = schema.ref!.startsWith('#') ? `lex:${nsid}${schema.ref}` : `lex:${schema.ref!.replace(/^lex:/, '')}`
  return (findDefinition(ref) as Schema | undefined) ?? schema
}

function inputOf(nsid: string): Input {
  const definition = findDefinition(`lex:${nsid}`) as unknown as { input?: { schema?: Schema }; parameters?: Schema }
  const schema = definition.input?.schema ? resolved(definition.input.schema, nsid) : definition.parameters
  return { properties: schema?.properties ?? {}, required: schema?.required ?? [] }
}

/** A value that a property accepts, and that means something here. */
function plausible(name: string, schema: Schema, nsid: string): unknown {
  const { type, format, items, knownValues, enum: values, minimum } = resolved(schema, nsid)
  if (name === 'repo') return stage.alice.did
  if (name === 'collection') return 'com.example.thing'
  if (name === 'record' || name === 'value') return { a: 1 }
  switch (type) {
    case 'string':
      switch (format) {
        case 'did':
          return nsid === 'com.atproto.admin.deleteAccount' ? 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' : bob
        case 'at-identifier':
          return bob
        case 'handle':
          return 'some-handle.test'
        case 'nsid':
          return 'com.example.thing'
        case 'cid':
          return JSON.parse(LINK)
        case 'at-uri':
          return `at://${bob}/com.example.thing/a`
        case 'datetime':
          return '2030-01-01T00:00:00Z'
        case 'tid':
          return '3jzfcijpj2z2a'
        default:
          return (values ?? knownValues)?.[0] ?? 'some text'
      }
    case 'integer':
      return minimum ?? 1
    case 'boolean':
      return true
    case 'array':
      return [plausible(name, items!, nsid)]
    case 'union':
      return { $type: 'com.atproto.admin.defs#repoRef', did: bob }
    default:
      return {}
  }
}

async function send(nsid: string, path: string, init: RequestInit): Promise<{ status: number; text: string }> {
  const served = servedMethods(subjectsOf()).find((one) => one.nsid === nsid)
  const headers =
    served === undefined
      ? nsid.includes('.admin.')
        ? operator
        : {}
      : served.callers.includes('F')
        ? bearer(stage.alice.accessJwt)
        : served.callers.includes('B')
          ? operator
          : {}
  const response = await fetch(`${stage.pds.url}/xrpc/${path}`, {
    redirect: 'manual',
    ...init,
    headers: { ...headers, ...(init.headers as Record<string, string>) },
  })
  return { status: response.status, text: Buffer.from(await response.arrayBuffer()).toString('latin1') }
}

/** Not one 500; and where it refuses, it says what. An upstream that is not there is a 502. */
function expectOurs(input: string, { status, text }: { status: number; text: string }): void {
  if (status < 400) return
  const body = JSON.parse(text) as { error: string }
  expect({ input: input.slice(0, 200), status, ...body }).toMatchObject({
    input: input.slice(0, 200),
    error: expect.any(String),
    message: expect.any(String),
  })
  if (status >= 500)
    expect({ input: input.slice(0, 200), status, ...body }).toMatchObject({ status: 502, error: 'UpstreamFailure' })
}

const json = { 'content-type': 'application/json' }

test.each(procedures)(
  '%s survives any input',
  async (nsid) => {
    const { properties, required } = inputOf(nsid)
    const bases = (
      required.length === Object.keys(properties).length || SLOW.has(nsid)
        ? [required]
        : [required, Object.keys(properties)]
    ).map((names) => names.map((name) => [name, JSON.stringify(plausible(name, properties[name]!, nsid))] as const))
    for (const base of bases)
      for (const name of Object.keys(properties))
        for (const wrong of valuesFor(nsid)) {
          const text = `{${[...base.filter(([other]) => other !== name), [name, wrong] as const].map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`
          expectOurs(text, await send(nsid, nsid, { method: 'POST', headers: json, body: text }))
        }
    for (const text of [
      ...valuesFor(nsid),
      '{"a":1,"a":2}',
      '{"__proto__":null}',
      deep(70_000),
      deep(30_000, '{"a":', '}'),
      '\uFEFF{}',
      '',
    ])
      expectOurs(text, await send(nsid, nsid, { method: 'POST', headers: json, body: text }))
    for (const query of ['?__proto__=x', '?a=%ff&a[]=b', '?='.repeat(500)])
      expectOurs(query, await send(nsid, `${nsid}${query}`, { method: 'POST', headers: json, body: '{}' }))
    if (nsid === 'com.atproto.server.deactivateAccount')
      expect((await stage.alice.call('com.atproto.server.activateAccount', { method: 'POST' })).status).toBe(200)
  },
  60_000,
)

test.each(queries)(
  '%s survives any parameters',
  async (nsid) => {
    const { properties } = inputOf(nsid)
    const base = Object.entries(properties).map(
      ([name, schema]) => [name, encodeURIComponent(String(plausible(name, schema, nsid)))] as const,
    )
    for (const [name] of base)
      for (const spelled of [
        ...wrongParams.map((wrong) => `${name}=${wrong}`),
        `${name}=a&${name}=b`,
        `${name}[]=a`,
        `${name}[0]=a`,
        `${name}[__proto__]=a`,
      ]) {
        const query = [
          ...base.filter(([other]) => other !== name).map(([key, value]) => `${key}=${value}`),
          spelled,
        ].join('&')
        expectOurs(query, await send(nsid, `${nsid}?${query}`, {}))
      }
    for (const query of [
      '__proto__=x',
      'constructor[prototype]=x',
      '='.repeat(1000),
      '%',
      '&&&&',
      `cursor=${'%00'.repeat(100)}`,
      `did=${bob}&`.repeat(200),
    ])
      expectOurs(query, await send(nsid, `${nsid}?${query}`, {}))
  },
  60_000,
)

test.each(streams)('%s survives any bytes', async (nsid) => {
  const type = kindOf(nsid).inputEncoding
  for (const body of [
    new Uint8Array(),
    new Uint8Array(5000),
    crypto.getRandomValues(new Uint8Array(5000)),
    Buffer.from('3aa265726f6f747381d82a', 'hex'),
    Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
  ])
    for (const header of [type ?? 'application/json', '*/*', 'x', '/', `a/${'b'.repeat(5000)}`, 'text/html; charset="'])
      expectOurs(
        `${header} ${body.length}`,
        await send(nsid, nsid, { method: 'POST', headers: { 'content-type': header }, body }),
      )
})

describe('memory', () => {
  const MAX_GROWTH_BYTES = 96 * 1024 ** 2
  const rounds = async (count: number) => {
    const host = new URL(stage.pds.url).host
    for (let i = 0; i < count; i++) {
      await send('com.atproto.repo.createRecord', 'com.atproto.repo.createRecord', {
        method: 'POST',
        headers: json,
        body: deep(70_000),
      })
      await send('com.atproto.repo.createRecord', 'com.atproto.repo.createRecord', {
        method: 'POST',
        headers: json,
        body: `"${'x'.repeat(1_100_000)}"`,
      })
      await send('com.atproto.repo.importRepo', 'com.atproto.repo.importRepo', {
        method: 'POST',
        headers: { 'content-type': 'application/vnd.ipld.car' },
        body: new Uint8Array(1_000_000),
      })
      await raw(
        stage.pds.url,
        `POST /xrpc/com.atproto.server.createSession HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"identifier":"`,
        1,
      )
    }
    Bun.gc(true)
    return process.memoryUsage.rss()
  }

  test('does not grow with what is refused', async () => {
    const before = await rounds(20)
    expect((await rounds(60)) - before).toBeLessThan(MAX_GROWTH_BYTES)
  }, 60_000)
})

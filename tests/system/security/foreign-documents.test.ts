/** Documents that anybody may publish, and whose texts were made to cost more than they weigh. */
import { beforeAll, beforeEach, expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { startUpstream } from '../../support/servers/upstream.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

/** A DID document may have 64 KiB. */
const SLASHES = '/'.repeat(64_000)
/** Most characters of an endpoint that is called. */
const MAX_ENDPOINT_CHARS = 2048

const upTo = (start: string, chars: number) => start + '/'.repeat(chars - start.length)

const service = setUp(startUpstream)
const { pds, author, labeler } = useWorld({
  author: true,
  labeler: true,
  config: ({ labeler }) => ({
    rateLimit: { enabled: false },
    labeler: { watched: [{ did: labeler.did, labels: [] }] },
  }),
})
beforeAll(() => {
  pds.dns.setTexts('_lexicon.notes.test', `did=${author.did}`)
})
beforeEach(() => {
  for (const each of [author, service, labeler]) each.received.length = 0
})

/** Endpoints that are too long, and what is at their end. */
const tooLong = [
  ['slashes', (url: string) => url + SLASHES],
  ['slashes and a letter', (url: string) => `${url + SLASHES}x`],
  ['one slash too many', (url: string) => upTo(url, MAX_ENDPOINT_CHARS + 1)],
] as const

/** Documents are cached by DID, and the longest ago is renewed. */
const nextDay = () => pds.clock.advance({ days: 2 })

const push = () => {
  const scope = 'atproto include:test.notes.auth'
  return new OAuthClient(pds, loopbackClientId(scope)).push({ scope })
}

/** To write one of 32,000 levels, which fits into a DID document, takes half a second. */
test('a DID document that is nested deeper than 256 levels is none', async () => {
  const ask = () => request(`${pds.url}/xrpc/com.atproto.identity.resolveDid?did=${encodeURIComponent(service.did)}`)
  for (const [levels, status] of [
    [250, 200],
    [300, 502],
  ] as const) {
    nextDay()
    service.document['nested'] = JSON.parse('['.repeat(levels) + ']'.repeat(levels))
    for (let time = 0; time < 2; time++) expect([levels, (await ask()).status]).toEqual([levels, status])
  }
  delete service.document['nested']
})

test.each(tooLong)(
  'a stranger who asks for a permission set whose author is at %s is refused, and nobody is called',
  async (_, endpoint) => {
    nextDay()
    author.services['atproto_pds'] = endpoint(author.url)
    expect(await push()).toMatchObject({ status: 400, body: { error: 'invalid_scope' } })
    expect(author.received).toEqual([])
  },
)

test.each(tooLong)('a request for a service at %s is refused, and nobody is called', async (_, endpoint) => {
  nextDay()
  const { accessJwt } = await createAccount(pds, `user${handles++}`)
  service.services['test_service'] = endpoint(service.url)
  const ask = () =>
    request(`${pds.url}/xrpc/test.notes.list`, {
      headers: { authorization: `Bearer ${accessJwt}`, 'atproto-proxy': `${service.did}#test_service` },
    })
  for (const { status } of await Promise.all(Array.from({ length: 5 }, ask))) expect(status).toBe(400)
  expect(service.received).toEqual([])
})
let handles = 0

test.each(tooLong)('a labeler at %s is skipped', async (_, endpoint) => {
  nextDay()
  await createAccount(pds, `labelled${handles++}`)
  labeler.services['atproto_labeler'] = endpoint(labeler.url)
  expect(await pds.runSweep('labeler-watch')).toMatchObject({ errors: 1 })
  expect(labeler.received).toEqual([])
})

test('the longest endpoint is called at its path, without the slashes at its end', async () => {
  nextDay()
  for (const [each, name] of [
    [author, 'atproto_pds'],
    [service, 'test_service'],
    [labeler, 'atproto_labeler'],
  ] as const)
    each.services[name] = upTo(`${each.url}/a//b`, MAX_ENDPOINT_CHARS)
  await push()
  expect(author.received.map(({ path }) => path)).toEqual([
    expect.stringMatching(/^\/a\/\/b\/xrpc\/com\.atproto\.sync\.getRecord\?/),
  ])
  const { accessJwt } = await createAccount(pds, `user${handles++}`)
  await request(`${pds.url}/xrpc/test.notes.list`, {
    headers: { authorization: `Bearer ${accessJwt}`, 'atproto-proxy': `${service.did}#test_service` },
  })
  expect(service.received.map(({ path }) => path)).toEqual(['/a//b/xrpc/test.notes.list'])
  labeler.answer('', () => Response.json({ labels: [] }))
  expect(await pds.runSweep('labeler-watch')).toMatchObject({ errors: 0 })
  expect(labeler.received[0]!.path).toStartWith('/a//b/xrpc/com.atproto.label.queryLabels?')
})

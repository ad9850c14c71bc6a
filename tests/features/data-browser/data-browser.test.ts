/** What account holders see of their own records and files, and moderators of those of others. */
import { describe, expect, test } from 'bun:test'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { ConsoleBrowser } from '../../support/clients/console-browser.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { roleHolder } from '../../support/clients/role-holder.ts'
import { png, Uploader } from '../../support/clients/uploader.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { leastCost } from '../../support/least-cost.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
const mona = setUp(() => roleHolder(pds, 'mona', 'moderator'))
const ivo = setUp(() => roleHolder(pds, 'ivo', 'invite-steward'))

const NOW = '2026-01-01T00:00:00Z'

async function put(holder: TestAccount, path: string, record: object): Promise<void> {
  const [collection, rkey] = path.split('/')
  const json = { repo: holder.did, collection, rkey, record: { $type: collection, ...record }, validate: false }
  const { status, body } = await holder.call('com.atproto.repo.putRecord', { json })
  if (status !== 200) throw new Error(JSON.stringify(body))
}

/** Writes so many records, numbered from `first`. */
async function fill(holder: TestAccount, collection: string, first: number, count: number): Promise<void> {
  const writes = Array.from({ length: count }, (_, i) => ({
    $type: 'com.atproto.repo.applyWrites#create',
    collection,
    rkey: String(first + i).padStart(5, '0'),
    value: { $type: collection, name: `number ${first + i}` },
  }))
  for (let at = 0; at < count; at += 100) {
    const json = { repo: holder.did, writes: writes.slice(at, at + 100), validate: false }
    const { status, body } = await holder.call('com.atproto.repo.applyWrites', { json })
    if (status !== 200) throw new Error(JSON.stringify(body))
  }
}

const read = (holder: TestAccount, parameters: Record<string, string> = {}) =>
  request(`${pds.url}/v1/account/data?${new URLSearchParams(parameters)}`, { headers: bearer(holder.accessJwt) })

async function browserOf({ handle, password }: TestAccount): Promise<CookieBrowser> {
  const browser = new CookieBrowser(pds)
  const { status } = await browser.send('/account/sign-in', { identifier: handle, password })
  if (status !== 303) throw new Error(`the sign-in answered ${status}`)
  return browser
}
const pageOf = async (browser: CookieBrowser, parameters: Record<string, string> = {}) => {
  const { status, body } = await browser.open(`/account/data?${new URLSearchParams(parameters)}`)
  return { status, text: String(body) }
}
const uploaderOf = ({ did, accessJwt }: TestAccount) => Uploader.at(pds, did as Did, accessJwt)

describe('records', () => {
  test('are told as what they are, with counts, and read as JSON', async () => {
    const ann = await createAccount(pds, 'ann')
    const other = 'did:plc:ewvi7nxzyoun6zhxrhs64oiz'
    await put(ann, 'app.bsky.feed.post/3aaaaaaaaaa22', { text: 'Good morning', createdAt: NOW })
    await put(ann, 'app.bsky.feed.like/3aaaaaaaaaa23', { subject: { uri: `at://${other}/x.y.z/1`, cid: 'b' } })
    await put(ann, 'app.bsky.graph.follow/3aaaaaaaaaa24', { subject: other, createdAt: NOW })
    await put(ann, 'app.bsky.graph.list/3aaaaaaaaaa25', { name: 'Birds', createdAt: NOW })
    await put(ann, 'app.bsky.actor.profile/self', { displayName: 'Ann of the hills' })
    await put(ann, 'com.example.thing/one', { title: 'A thing', depth: { of: [1, 2, null] } })
    const browser = await browserOf(ann)
    const { text } = await pageOf(browser)
    expect(text).toContain('com.example.thing')
    expect((await read(ann)).body).toMatchObject({
      head: { rev: expect.any(String), cid: expect.stringMatching(/^baf/), data: expect.stringMatching(/^baf/) },
      collections: [
        { collection: 'app.bsky.actor.profile', records: { count: 1, isMore: false } },
        { collection: 'app.bsky.feed.like' },
        { collection: 'app.bsky.feed.post' },
        { collection: 'app.bsky.graph.follow' },
        { collection: 'app.bsky.graph.list' },
        { collection: 'com.example.thing' },
      ],
    })
    const told = async (collection: string) => (await pageOf(browser, { part: 'records', collection })).text
    expect(await told('app.bsky.feed.post')).toMatch(/>Post<[\s\S]*Good morning/)
    expect(await told('app.bsky.feed.like')).toContain(`Like of at://${other}/x.y.z/1`)
    expect(await told('app.bsky.graph.follow')).toContain(`Follow of ${other}`)
    expect(await told('app.bsky.graph.list')).toMatch(/>List<[\s\S]*Birds/)
    expect(await told('app.bsky.actor.profile')).toMatch(/>Profile<[\s\S]*Ann of the hills/)
    expect(await told('com.example.thing')).toMatch(/>A record<[\s\S]*A thing/)
    const { text: record } = await pageOf(browser, { part: 'record', path: 'com.example.thing/one' })
    expect(record.replaceAll('&quot;', '"')).toContain('"depth": {\n    "of": [\n      1,\n      2,\n      null\n')
    expect((await read(ann, { part: 'record', path: 'com.example.thing/one' })).body.value).toEqual({
      $type: 'com.example.thing',
      title: 'A thing',
      depth: { of: [1, 2, null] },
    })
  })

  test('are read page by page, and the statements of a page are as many for a large collection', async () => {
    const bert = await createAccount(pds, 'bert')
    for (let first = 0; first < 60; first += 2) await fill(bert, 'com.example.many', first, 2)
    const parts: Record<string, string>[] = [
      {},
      { part: 'records', collection: 'com.example.many' },
      { part: 'record', path: 'com.example.many/00007' },
      { part: 'blobs' },
      { part: 'commits' },
    ]
    const costs = async () => {
      const found: number[] = []
      for (const one of parts)
        found.push(await leastCost(pds.ctx.db, async () => expect((await read(bert, one)).status).toBe(200)))
      return found
    }
    const before = await costs()
    await fill(bert, 'com.example.many', 60, 1100)
    expect(await costs()).toEqual(before)
    expect((await read(bert)).body.collections).toEqual([
      { collection: 'com.example.many', records: { count: 1000, isMore: true } },
    ])

    const names: string[] = []
    let cursor: string | undefined = ''
    for (let pages = 0; cursor !== undefined && pages < 100; pages++) {
      const { body }: { body: { records: { path: string }[]; cursor?: string } } = await read(bert, {
        part: 'records',
        collection: 'com.example.many',
        cursor,
      })
      expect(body.records.length).toBeLessThanOrEqual(20)
      names.push(...body.records.map(({ path }) => path))
      cursor = body.cursor
    }
    expect(names).toHaveLength(1160)
    expect(names).toEqual(names.toSorted().toReversed())
  })

  test('of many collections are found page by page', async () => {
    const cara = await createAccount(pds, 'cara')
    const kinds = Array.from({ length: 45 }, (_, i) => `com.example.kind${String.fromCharCode(97 + (i % 26))}${i}`)
    for (const kind of kinds) await put(cara, `${kind}/self`, {})
    const found: string[] = []
    let cursor: string | undefined = ''
    while (cursor !== undefined) {
      const { body }: { body: { collections: { collection: string }[]; cursor?: string } } = await read(cara, {
        cursor,
      })
      found.push(...body.collections.map(({ collection }) => collection))
      cursor = body.cursor
    }
    expect(found.toSorted()).toEqual(kinds.toSorted())
  })

  test('that are large are shown from their beginning, and no page is', async () => {
    const dora = await createAccount(pds, 'dora')
    await put(dora, 'com.example.big/one', { text: `"<&>'`.repeat(30_000) })
    const browser = await browserOf(dora)
    const { text } = await pageOf(browser, { part: 'record', path: 'com.example.big/one' })
    expect(Buffer.byteLength(text)).toBeLessThan(60_000)
    expect(text).toContain('Only the beginning is shown here.')
    expect((await pageOf(browser, { part: 'records', collection: 'com.example.big' })).text).toContain('A large record')
  })

  test('with markup in them are shown as text', async () => {
    const eve = await createAccount(pds, 'eve')
    const evil = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e'
    await put(eve, 'app.bsky.feed.post/3aaaaaaaaaa22', { text: evil, [evil]: { [evil]: evil } })
    await put(eve, 'app.bsky.actor.profile/self', { displayName: evil, description: evil })
    await put(eve, 'app.bsky.feed.like/3aaaaaaaaaa23', { subject: { uri: evil, cid: evil } })
    await put(eve, 'com.example.thing/javascript:alert~1', { title: evil, subject: { uri: 'javascript:alert(1)' } })
    const browser = await browserOf(eve)
    const asked: Record<string, string>[] = [
      {},
      ...['app.bsky.feed.post', 'app.bsky.actor.profile', 'app.bsky.feed.like', 'com.example.thing'].map(
        (collection) => ({ part: 'records', collection }),
      ),
      { part: 'record', path: 'app.bsky.feed.post/3aaaaaaaaaa22' },
      { part: 'record', path: 'com.example.thing/javascript:alert~1' },
      { part: 'commits' },
    ]
    const moderator = new ConsoleBrowser(pds)
    await moderator.signIn(mona.did)
    for (const parameters of asked) {
      const query = new URLSearchParams({ did: eve.did, ...parameters })
      const shown = [
        (await pageOf(browser, parameters)).text,
        String((await moderator.open(`/admin/data?${query}`)).body),
      ]
      for (const text of shown) {
        expect(text).not.toContain('<script>alert')
        expect(text).not.toContain('<img src=x')
        expect(text).not.toContain('href="javascript:')
      }
    }
    const wrong: Record<string, string>[] = [
      { part: evil },
      { part: 'records', collection: evil },
      { part: 'record', path: evil },
    ]
    for (const bad of wrong) expect((await pageOf(browser, bad)).text).not.toContain('<script>alert')
  })
})

describe('files', () => {
  test('are listed with the records that use them, and only images are shown in the browser', async () => {
    const finn = await createAccount(pds, 'finn')
    const uploader = uploaderOf(finn)
    const picture = await uploader.upload(png, 'image/png')
    const svg = await uploader.upload(
      '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
      'image/svg+xml',
    )
    const page = await uploader.upload('<!doctype html><script>alert(1)</script>', 'text/html')
    await uploader.refer('com.example.album/one', picture, svg)
    await uploader.refer('com.example.album/two', picture)
    const { body } = await read(finn, { part: 'blobs' })
    const usedBy = Object.fromEntries(
      body.blobs.map(({ cid, records }: { cid: string; records: string[] }) => [cid, records]),
    )
    expect(usedBy).toEqual({
      [picture.ref.$link]: ['com.example.album/one', 'com.example.album/two'],
      [svg.ref.$link]: ['com.example.album/one'],
      [page.ref.$link]: [],
    })
    expect((await read(finn, { part: 'record', path: 'com.example.album/two' })).body.blobs).toEqual([
      picture.ref.$link,
    ])

    const browser = await browserOf(finn)
    const { text } = await pageOf(browser, { part: 'blobs' })
    expect(text.match(/<img class="preview"/g)).toHaveLength(1)
    const open = (cid: string) =>
      fetch(`${pds.url}/account/data/blob?${new URLSearchParams({ account: finn.did, cid })}`, {
        headers: { cookie: browser.cookie, 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'image' },
      })
    for (const [blob, disposition] of [
      [picture, 'inline'],
      [svg, 'attachment'],
      [page, 'attachment'],
    ] as const) {
      const { status, headers } = await open(blob.ref.$link)
      expect(status).toBe(200)
      expect(headers.get('content-disposition')).toStartWith(`${disposition};`)
      expect(headers.get('content-security-policy')).toBe("default-src 'none'; sandbox")
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('cross-origin-resource-policy')).toBe('same-origin')
      expect(headers.get('cache-control')).toBe('private, no-cache')
    }
  })

  test('that no record uses are for their owner, and not for strangers', async () => {
    const gina = await createAccount(pds, 'gina')
    const other = await createAccount(pds, 'otto')
    const { ref } = await uploaderOf(gina).upload(png, 'image/png')
    expect(await uploaderOf(other).sees(ref.$link)).toEqual({ status: 400, error: 'BlobNotFound' })
    const path = `/account/data/blob?${new URLSearchParams({ account: gina.did, cid: ref.$link })}`
    const own = await browserOf(gina)
    const open = (cookie: string, headers: Record<string, string> = {}) =>
      fetch(`${pds.url}${path}`, { headers: { cookie, ...headers }, redirect: 'manual' })
    expect((await open(own.cookie)).status).toBe(200)
    expect((await open('')).status).toBe(303)
    expect((await open((await browserOf(other)).cookie)).status).toBe(303)
    for (const site of ['cross-site', 'same-site'])
      expect((await open(own.cookie, { 'sec-fetch-site': site })).status).toBe(403)
    const api = (token: string) =>
      fetch(`${pds.url}/v1/account/data/blob?cid=${ref.$link}`, { headers: token === '' ? {} : bearer(token) })
    expect([(await api(gina.accessJwt)).status, (await api(other.accessJwt)).status, (await api('')).status]).toEqual([
      200, 400, 401,
    ])
    expect((await api(gina.accessJwt)).headers.get('cache-control')).toBe('private, no-cache')
  })
})

test('versions are listed with what they wrote, newest first', async () => {
  const hans = await createAccount(pds, 'hans')
  await put(hans, 'com.example.thing/one', {})
  await fill(hans, 'com.example.many', 0, 8)
  await put(hans, 'com.example.thing/two', {})
  const { body } = await read(hans, { part: 'commits' })
  expect(body.commits).toEqual([
    expect.objectContaining({ records: { count: 1, isMore: false }, paths: ['com.example.thing/two'] }),
    expect.objectContaining({ records: { count: 8, isMore: false } }),
    expect.objectContaining({ paths: ['com.example.thing/one'] }),
  ])
  expect(body.commits[0].rev).toBe((await read(hans)).body.head.rev)
  const { body: older } = await read(hans, { part: 'commits', cursor: body.commits[1].rev })
  expect(older.commits).toEqual([body.commits[2]])
  expect((await read(hans, { part: 'commits', cursor: 'nonsense' })).status).toBe(400)
})

test('the pages and endpoints of a holder are closed to everyone else', async () => {
  const ines = await createAccount(pds, 'ines')
  const { body } = await ines.call('com.atproto.server.createAppPassword', { json: { name: 'app' } })
  const app = await logIn(pds, ines, body.password)
  expect((await read(app)).status).toBeGreaterThanOrEqual(400)
  expect((await request(`${pds.url}/v1/account/data`)).status).toBe(401)
  expect((await pageOf(new CookieBrowser(pds))).status).toBe(303)
  expect((await pageOf(await browserOf(ines), { account: mona.did })).status).toBe(303)
})

test('moderators look at the data of others, and the audit log has at what', async () => {
  const jona = await createAccount(pds, 'jona')
  await put(jona, 'com.example.thing/one', { title: 'Reported' })
  const { ref } = await uploaderOf(jona).upload(png, 'image/png')
  const path = `/v1/admin/accounts/${encodeURIComponent(jona.did)}/data`
  expect((await ivo.operate(path)).status).toBe(403)
  expect((await request(`${pds.url}${path}`)).status).toBe(401)
  expect((await mona.operate(`/v1/admin/accounts/did:web:nobody.test/data`)).status).toBe(404)

  const browser = new ConsoleBrowser(pds)
  await browser.signIn(mona.did)
  const did = encodeURIComponent(jona.did)
  expect(String((await browser.open(`/admin/account?did=${did}`)).body)).toContain(`/admin/data?did=${did}`)
  const { body } = await browser.open(`/admin/data?did=${did}&part=records&collection=com.example.thing`)
  expect(String(body)).toContain('Reported')
  // Also once it is taken down, which its holder no longer sees.
  const subject = { $type: 'com.atproto.admin.defs#repoBlobRef', did: jona.did, cid: ref.$link }
  const json = { subject, takedown: { applied: true } }
  await request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, { json, headers: bearer(ADMIN_TOKEN) })
  const own = await request(`${pds.url}/v1/account/data/blob?cid=${ref.$link}`, { headers: bearer(jona.accessJwt) })
  expect(own.status).toBe(400)
  const blob = await browser.open(`/admin/data/blob?did=${did}&cid=${ref.$link}`)
  expect([blob.status, blob.headers.get('content-security-policy')]).toEqual([200, "default-src 'none'; sandbox"])
  const { body: log } = await request(`${pds.url}/v1/admin/audit?subject=${did}`, { headers: bearer(ADMIN_TOKEN) })
  const seen = log.events.filter(({ action }: { action: string }) => action === 'account_data_read')
  expect(seen.map(({ actor }: { actor: string }) => actor)).toEqual([`operator:${mona.did}`, `operator:${mona.did}`])
  expect(JSON.stringify(seen)).toContain('com.example.thing')
  expect(JSON.stringify(seen)).toContain(ref.$link)

  const steward = new ConsoleBrowser(pds)
  await steward.signIn(ivo.did)
  expect((await steward.open(`/admin/data?did=${did}`)).status).toBe(403)
  expect((await steward.open(`/admin/data/blob?did=${did}&cid=${ref.$link}`)).status).toBe(403)
  expect((await new ConsoleBrowser(pds).open(`/admin/data?did=${did}`)).headers.get('location')).toBe('/admin/sign-in')
})

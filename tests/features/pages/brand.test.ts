/** What operators change about pages and mails by settings: name, colours, logo and imprint. */
import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'bun:test'
import { contrast, faintOn } from '../../../src/platform/configuration/colours.ts'
import { createAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { startPds } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const IMPRINT = 'https://example.com/imprint'

const files: string[] = []
function picture(bytes: Uint8Array): string {
  const path = join(tmpdir(), `holdfast-logo-${crypto.randomUUID()}`)
  writeFileSync(path, bytes)
  files.push(path)
  return path
}
afterAll(() => files.forEach((path) => rmSync(path)))

const { pds } = useWorld({
  config: {
    serviceName: 'Community <One>',
    brand: { accentColor: '#7a1f5c', logoFile: picture(PNG) },
    links: { imprint: IMPRINT },
  },
})

const page = async (url = pds.url) => String((await request(`${url}/account/sign-in`)).body)

test('a page has the name, the logo and the imprint of its operator', async () => {
  const shown = await page()
  expect(shown).toContain('Community &lt;One&gt;')
  expect(shown).toContain('<img class="mark" src="/assets/logo" alt="">')
  expect(shown).toContain(`<a href="${IMPRINT}" rel="noreferrer">Imprint</a>`)
  const { status, headers } = await request(`${pds.url}/assets/logo`)
  expect([status, headers.get('content-type')]).toEqual([200, 'image/png'])
  expect(headers.get('x-content-type-options')).toBe('nosniff')
})

test('the stylesheet has the colours, at an address of its own', async () => {
  await using plain = await startPds()
  const sheet = async (url: string) => {
    const [, path] = /<link rel="stylesheet" href="([^"]+)"/.exec(await page(url))!
    return { path, text: String((await request(url + path)).body) }
  }
  const [ours, theirs] = [await sheet(pds.url), await sheet(plain.url)]
  expect(ours.text).toEndWith(':root{--accent-light:#7a1f5c}\n')
  expect(theirs.text).not.toContain('#7a1f5c')
  expect(ours.path).not.toBe(theirs.path)
  expect((await request(`${plain.url}/assets/logo`)).status).toBe(404)
})

test('a mail ends with the imprint', async () => {
  const alice = await createAccount(pds, 'alice')
  await alice.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })
  expect(pds.mails.at(-1)!.text).toEndWith(`\n-- \nCommunity <One>\n${IMPRINT}\n`)
})

test('colours that cannot be read are refused', () => {
  expect(contrast('#000000', '#ffffff')).toBeCloseTo(21)
  expect(faintOn('#0a6652', 'light')).toBeNull()
  expect(faintOn('#63d6b6', 'dark')).toBeNull()
  expect(faintOn('#ffe000', 'light')).toBe('#ffffff')
  expect(faintOn('#202020', 'dark')).not.toBeNull()
})

test.each([
  [
    'a picture with scripts',
    Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>'),
    'is not a PNG',
  ],
  ['a file that is too large', Buffer.concat([PNG, Buffer.alloc(100 * 1024)]), 'more than 102400 bytes'],
  ['an empty file', Buffer.alloc(0), 'is not a PNG'],
])('the server does not start with %s as its logo', async (_, bytes, message) => {
  const started = startPds({ brand: { logoFile: picture(bytes) } })
  expect(await started.then(String, String)).toContain(message)
})

/** In which language a person is answered, and how they choose another. */
import { expect, test } from 'bun:test'
import { request } from '../../support/clients/http.ts'
import { startPds } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld()

const MISSING = '/no/such/page'
const titles = { en: 'Page not found', de: 'Seite nicht gefunden', fr: 'Page introuvable' }

async function shown(headers: Record<string, string>, url = pds.url) {
  const answer = await request(url + MISSING, { headers: { accept: 'text/html', ...headers } })
  const page = String(answer.body)
  return {
    language: /<html lang="([^"]*)"/.exec(page)?.[1],
    title: /<h1>([^<]*)</.exec(page)?.[1],
    vary: answer.headers.get('vary') ?? '',
  }
}

const choose = (back: string) =>
  request(`${pds.url}/language?${new URLSearchParams({ back })}`, {
    method: 'POST',
    body: new URLSearchParams({ language: 'fr' }),
  })

test('the browser says which language a person reads', async () => {
  expect(await shown({ 'accept-language': 'de-AT,de;q=0.9,en;q=0.5' })).toMatchObject({
    language: 'de',
    title: titles.de,
    vary: expect.stringContaining('Accept-Language'),
  })
  expect(await shown({ 'accept-language': 'nl' })).toMatchObject({ language: 'en', title: titles.en })
  expect(await shown({})).toMatchObject({ language: 'en', title: titles.en })
})

test('a choice at the foot of a page outweighs the browser, and leads back to the page', async () => {
  const back = '/account/sign-in?identifier=a%26b'
  const answer = await choose(back)
  expect(answer.status).toBe(303)
  expect(answer.headers.get('location')).toBe(`${pds.url}${back}`)
  const [cookie = ''] = answer.headers.getSetCookie()
  expect(cookie).toContain('HttpOnly; SameSite=Lax')
  const chosen = { cookie: cookie.split(';')[0]!, 'accept-language': 'de' }
  expect(await shown(chosen)).toMatchObject({ language: 'fr', title: titles.fr })
  expect(await shown({ cookie: chosen.cookie.replace('fr', 'xx'), 'accept-language': 'de' })).toMatchObject({
    language: 'de',
  })
})

test.each([
  'https://evil.example/',
  '//evil.example/',
  '/\\evil.example',
  'javascript:alert(1)',
  '/.//evil.example',
  '',
])('the choice leads to no other site: %s', async (back) => {
  const location = (await choose(back)).headers.get('location')!
  expect(location.startsWith(`${pds.url}/`)).toBe(true)
  expect(new URL(location).origin).toBe(new URL(pds.url).origin)
})

test.each([
  ['a site', (name: string, host: string) => `http://${name}@${host}/account/sign-in`],
  ['a site without a scheme', (name: string, host: string) => `//${name}@${host}/account/sign-in`],
])('the address to lead back to is not read if it names %s at length', async (_, address) => {
  const { host } = new URL(pds.url)
  const short = address('me', host)
  expect((await choose(short)).headers.get('location')).toBe(new URL(short, pds.url).href)
  expect((await choose(address('m'.repeat(300), host))).headers.get('location')).toBe(`${pds.url}/account`)
})

test('no other site chooses, and no language is chosen that there is not', async () => {
  const send = (language: string, headers: Record<string, string>) =>
    request(`${pds.url}/language`, { method: 'POST', body: new URLSearchParams({ language }), headers })
  expect((await send('fr', { 'sec-fetch-site': 'cross-site' })).status).toBe(403)
  expect((await send('xx', {})).status).toBe(400)
  expect((await send('__proto__', {})).status).toBe(400)
})

test('a long header takes no time and counts for what it begins with', async () => {
  expect(await shown({ 'accept-language': `de,${'x;q=0.1,'.repeat(1500)}` })).toMatchObject({ language: 'de' })
})

test('operators set the language of people of whom nothing is known', async () => {
  await using german = await startPds({ pages: { language: 'de' } })
  expect(await shown({}, german.url)).toMatchObject({ language: 'de' })
  expect(await shown({ 'accept-language': 'fr' }, german.url)).toMatchObject({ language: 'fr' })
})

/** `kill -9` while an archive is uploaded on its page: nothing is left of it, and the next upload is taken. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import { createAccount, PASSWORD } from '../../support/clients/account.ts'
import { bearer } from '../../support/clients/http.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { freePort } from '../../support/ports.ts'
import { startProgram, type RunningServer } from '../../support/servers/program.ts'

const PATH = '/account/archive/import'
const PAUSED_BYTES = 256 * 1024
/** What a browser says of a form on a page of the server, whatever its name is. */
const SAME_SITE = { 'sec-fetch-site': 'same-origin' }

test('an account is as it was after the kill, and as in the archive after the next upload', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-import-'))
  const data = join(folder, 'data')
  const env = {
    PORT: String(await freePort()),
    SERVICE_DATA_DIR: data,
    SERVICE_SIGNING_KEY_MASTER_KEY: '07'.repeat(32),
    SERVICE_RATE_LIMIT_ENABLED: 'false',
  }
  let server: RunningServer = await startProgram(['dev'], env, folder)
  try {
    const alice = await createAccount(server, 'alice')
    const blob = await alice.call('com.atproto.repo.uploadBlob', {
      method: 'POST',
      body: new Uint8Array(2 * PAUSED_BYTES).fill(7),
      headers: { 'content-type': 'video/mp4' },
    })
    const write = async (text: string) => {
      const record = { $type: 'com.example.note', text, film: blob.body.blob }
      const json = { repo: alice.did, collection: 'com.example.note', record }
      expect((await alice.call('com.atproto.repo.createRecord', { json })).status).toBe(200)
    }
    const texts = async (): Promise<string[]> => {
      const { body } = await alice.call(
        `com.atproto.repo.listRecords?repo=${alice.did}&collection=com.example.note&reverse=true`,
      )
      return body.records.map(({ value }: { value: { text: string } }) => value.text)
    }
    await write('before')
    const exported = await fetch(`${server.url}/v1/account/archive`, { headers: bearer(alice.accessJwt) })
    const archive = new Uint8Array(await exported.arrayBuffer())
    await write('since then')
    const files = readdirSync(data).toSorted()

    const browser = new CookieBrowser(server)
    await browser.send('/account/sign-in', { identifier: alice.handle, password: PASSWORD }, SAME_SITE)
    const form_token = /name="form_token" value="([^"]+)"/.exec((await browser.open(PATH)).body)![1]!
    const form = new FormData()
    for (const [name, value] of Object.entries({ account: alice.did, form_token, sure: 'yes' }))
      form.append(name, value)
    form.append('file', new Blob([archive]), 'a.zip')
    const whole = new Response(form)
    const type = whole.headers.get('content-type')!
    const bytes = await whole.bytes()

    const sentHalf = Promise.withResolvers<void>()
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        controller.enqueue(bytes.subarray(0, PAUSED_BYTES))
        sentHalf.resolve()
        await new Promise(() => {})
      },
    })
    const headers = { ...SAME_SITE, 'content-type': type, cookie: browser.cookie }
    const cut = fetch(server.url + PATH, { method: 'POST', headers, body }).catch((error: Error) => error)
    await sentHalf.promise
    await server[Symbol.asyncDispose]()
    expect(await cut).toBeInstanceOf(Error)
    server = await startProgram(['dev'], env, folder)
    expect(await texts()).toEqual(['before', 'since then'])
    expect(readdirSync(data).toSorted()).toEqual(files)

    const answer = await fetch(server.url + PATH, { method: 'POST', headers, body: bytes })
    expect({ status: answer.status, body: await answer.text() }).toEqual({
      status: 200,
      body: expect.stringContaining('The whole archive has been taken over'),
    })
    expect(await texts()).toEqual(['before'])
  } finally {
    await server[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  }
})

/**
 * `kill -9` between the steps of a recovery. Whoever was told that something happened finds that it has, and a code
 * opens one release.
 */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from '../../support/clients/http.ts'
import { startMailbox, type Mailbox, type Received } from '../../support/clients/mailbox.ts'
import { freePort } from '../../support/ports.ts'
import { startProgram } from '../../support/servers/program.ts'
import { initiate, newShare, putShare, release } from '../../support/clients/recovery.ts'
import { eventLoopTurns } from '../../support/until.ts'

const MAX_MILLIS = 120_000
const EMAIL = 'alice@example.com'

const codeOf = ({ source }: Received) => /\r\nRecovery code:\r\n(\S{43})\r\n/.exec(source)?.[1] ?? null
const codesIn = ({ received }: Mailbox) => [...new Set(received.flatMap((mail) => codeOf(mail) ?? []))]

async function arrived(box: Mailbox, isThere: () => boolean): Promise<void> {
  while (!isThere()) await box.next()
}

async function inFolder(
  work: (place: { box: Mailbox; start(delaySecs: number): ReturnType<typeof startProgram> }) => Promise<void>,
) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-recovery-'))
  try {
    await using box = await startMailbox({ tls: 'none' })
    const env = {
      PORT: String(await freePort()),
      SERVICE_SIGNING_KEY_MASTER_KEY: '07'.repeat(32),
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      SERVICE_EMAIL_PROVIDER: 'smtp',
      SERVICE_EMAIL_FROM: 'pds@example.org',
      SERVICE_EMAIL_SMTP_HOST: 'localhost',
      SERVICE_EMAIL_SMTP_PORT: String(box.port),
      SERVICE_EMAIL_SMTP_TLS: 'none',
    }
    await work({
      box,
      start: (delaySecs) =>
        startProgram(['dev'], { ...env, SERVICE_RECOVERY_RELEASE_DELAY_SECS: String(delaySecs) }, folder),
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const signUp = async (url: string) =>
  (
    await request(`${url}/xrpc/com.atproto.server.createAccount`, {
      keepalive: false,
      json: { handle: 'alice.test', email: EMAIL, password: 'a password of alice' },
    })
  ).body as { did: string; accessJwt: string }

test(
  'a code that was promised comes, a release that was opened is open, and its notice is sent',
  () =>
    inFolder(async ({ box, start }) => {
      let did: string
      {
        await using server = await start(3600)
        const alice = await signUp(server.url)
        did = alice.did
        await putShare(server, alice.accessJwt, newShare())
        expect((await initiate(server, did)).status).toBe(200)
        server.signal('SIGKILL')
        await server.exited
      }
      let opened: unknown
      {
        await using server = await start(3600)
        await arrived(box, () => codesIn(box).length > 0)
        const answer = await release(server, did, codesIn(box)[0]!)
        expect(answer).toMatchObject({ status: 200, body: { status: 'pending' } })
        opened = answer.body
        server.signal('SIGKILL')
        await server.exited
      }
      await using server = await start(3600)
      expect((await release(server, did)).body).toEqual(opened)
      expect((await release(server, did, codesIn(box)[0]!)).body).toEqual(opened)
      await arrived(box, () =>
        box.received.some(({ source }) => source.includes('Recovery of your account was requested')),
      )
      expect(codesIn(box)).toHaveLength(1)
    }),
  MAX_MILLIS,
)

test(
  'without a delay a code gets the share, before a kill and after it, wherever it falls',
  () =>
    inFolder(async ({ box, start }) => {
      const share = newShare()
      let did = ''
      for (let round = 0; round < 5; round++) {
        let first: unknown = null
        let code: string
        {
          await using server = await start(0)
          if (did === '') {
            const alice = await signUp(server.url)
            did = alice.did
            await putShare(server, alice.accessJwt, share)
          }
          const known = codesIn(box).length
          await initiate(server, did)
          await arrived(box, () => codesIn(box).length > known)
          code = codesIn(box).at(-1)!
          const asked = release(server, did, code).then(
            ({ status, body }) => (first = { status, body }),
            () => null,
          )
          await eventLoopTurns(round * 4)
          server.signal('SIGKILL')
          await Promise.all([server.exited, asked])
        }
        await using server = await start(0)
        // Nobody who has no code finds a release half open.
        expect((await release(server, did)).status).toBe(401)
        // For an hour, the code that has opened the release gets the share again.
        const released = { status: 200, body: { status: 'released', share } }
        expect(await release(server, did, code)).toMatchObject(released)
        if (first !== null) expect(first).toEqual(released)
      }
    }),
  MAX_MILLIS,
)

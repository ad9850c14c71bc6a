/**
 * `kill -9` on the way of a mail from the request to the mail server and back. MAIL_KILLS says how often. Whoever was
 * told that a code is on its way gets a mail whose code is good.
 */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from '../../support/clients/http.ts'
import { startMailbox, type Mailbox, type Received } from '../../support/clients/mailbox.ts'
import { freePort } from '../../support/ports.ts'
import { type RunningServer, startProgram } from '../../support/servers/program.ts'
import { eventLoopTurns } from '../../support/until.ts'

const KILLS = Number(process.env['MAIL_KILLS'] ?? 12)
const MAX_MILLIS_PER_KILL = 10_000
/** Turns of the event loop between an answer and the kill, another number in each round, so that it falls anywhere. */
const turnsBeforeKill = (round: number) => round * 3

const call = (server: RunningServer, method: string, json: object) =>
  request(`${server.url}/xrpc/com.atproto.server.${method}`, { keepalive: false, json })
const codeIn = ({ source }: Received) => /^([A-Z2-7]{5}-[A-Z2-7]{5})\r$/m.exec(source)![1]!
const messageId = ({ source }: Received) => /^Message-ID: (.*)\r$/im.exec(source)![1]!

interface Stage {
  server: RunningServer
  box: Mailbox
  email: string
  round: number
}

/** When the server is killed after a request for a code. */
const moments: ((stage: Stage) => Promise<unknown>)[] = [
  // Somewhere between the answer and the mail.
  ({ round }) => eventLoopTurns(turnsBeforeKill(round)),
  // The mail server has the mail, and has not said so.
  ({ box, email }) => mailTo(box, email),
  // It has said so, and that may be written down or not.
  async ({ box, email }) => {
    const arrived = mailTo(box, email)
    box.held = null
    await arrived
  },
]

async function mailTo(box: Mailbox, email: string): Promise<Received> {
  const arrived = () => box.received.findLast(({ to }) => to.includes(email))
  for (let mail = arrived(); ; mail = arrived()) {
    if (mail) return mail
    await box.next()
  }
}

test(
  `after ${KILLS} kills whoever was promised a code has one that is good`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-mails-'))
    await using box = await startMailbox({ tls: 'none' })
    const env = {
      PORT: String(await freePort()),
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      SERVICE_EMAIL_PROVIDER: 'smtp',
      SERVICE_EMAIL_FROM: 'pds@example.org',
      SERVICE_EMAIL_SMTP_HOST: 'localhost',
      SERVICE_EMAIL_SMTP_PORT: String(box.port),
      SERVICE_EMAIL_SMTP_TLS: 'none',
    }
    const start = () => startProgram(['dev'], env, folder)
    try {
      for (let round = 0; round < KILLS; round++) {
        const email = `person${round}@example.com`
        const never = new Promise<void>(() => {})
        {
          await using server = await start()
          expect(
            (
              await call(server, 'createAccount', {
                handle: `person${round}.test`,
                email,
                password: 'the old password',
              })
            ).status,
          ).toBe(200)
          box.held = never
          expect((await call(server, 'requestPasswordReset', { email })).status).toBe(200)
          await moments[round % moments.length]!({ server, box, email, round })
          server.signal('SIGKILL')
          await server.exited
        }
        box.held = null
        const sent = box.received.filter(({ to }) => to.includes(email))
        await using next = await start()
        await mailTo(box, email)
        // A mail that was on its way may come once more, as the same one.
        while (!(await resets(next, box, email))) await box.next()
        const all = box.received.filter(({ to }) => to.includes(email))
        expect(all.length).toBeLessThanOrEqual(sent.length + 1)
        expect(new Set(all.map(messageId)).size).toBe(1)
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
  KILLS * MAX_MILLIS_PER_KILL,
)

const resets = async (server: RunningServer, box: Mailbox, email: string): Promise<boolean> =>
  (await call(server, 'resetPassword', { token: codeIn(await mailTo(box, email)), password: 'the new password' }))
    .status === 200

/** A real SMTP server that keeps what it is sent. */
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { serverCertificate, serverKey } from '../certificates.ts'

export interface Received {
  from: string
  to: string[]
  user: string | null
  secure: boolean
  /** The whole message with its headers. */
  source: string
}

export interface Mailbox extends AsyncDisposable {
  port: number
  received: Received[]
  /** Messages are taken, and answered once this is over. */
  held: Promise<void> | null
  /** The first message that comes from now on. */
  next(): Promise<Received>
}

export interface MailboxOptions {
  /** `implicit` speaks TLS from the first byte; `none` does not offer it at all. */
  tls: 'starttls' | 'implicit' | 'none'
  /** Demands a login. */
  login?: { user: string; password: string }
  port?: number
  /** Recipients that there are none of. */
  unknown?: readonly string[]
}

export async function startMailbox({ tls, login, port = 0, unknown = [] }: MailboxOptions): Promise<Mailbox> {
  const received: Received[] = []
  const awaited: ((mail: Received) => void)[] = []
  const server = new SMTPServer({
    key: serverKey,
    cert: serverCertificate,
    disabledCommands: tls === 'none' ? ['STARTTLS'] : [],
    secure: tls === 'implicit',
    authOptional: login === undefined,
    onAuth({ username, password }, _session, answer) {
      if (username === login?.user && password === login?.password) answer(null, { user: username })
      else answer(new Error('wrong login'))
    },
    onRcptTo({ address }, _session, answer) {
      answer(
        unknown.includes(address)
          ? Object.assign(new Error(`<${address}>: there is nobody of this name`), { responseCode: 550 })
          : null,
      )
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        const mail: Received = {
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          user: session.user ?? null,
          secure: session.secure,
          source: Buffer.concat(chunks).toString(),
        }
        received.push(mail)
        for (const arrived of awaited.splice(0)) arrived(mail)
        void (mailbox.held ?? Promise.resolve()).then(() => done())
      })
    },
  })
  // A client that breaks off is the test's business, not an error of the server.
  server.on('error', () => undefined)
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const mailbox: Mailbox = {
    port: (server.server.address() as AddressInfo).port,
    received,
    held: null,
    next: () => new Promise((resolve) => awaited.push(resolve)),
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
  return mailbox
}

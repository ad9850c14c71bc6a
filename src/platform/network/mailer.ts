/**
 * Outgoing mail: over SMTP, through a provider's HTTP API, or, for development, into the log. The library for SMTP is
 * loaded with the first mail.
 */
import { madeOnce } from '../../base/made-once.ts'
import type { Config } from '../configuration/config.ts'
import type { Log } from '../running/log.ts'
import type { Outbound } from './outbound.ts'

export interface Mail {
  to: string
  subject: string
  /** Plain text. A token stands alone on a line of its own. */
  text: string
}

export interface Mailer {
  /**
   * Resolves when the provider has accepted the message. Rejects with `MailRefused` if the provider will never accept
   * it, and with any other error if a later try may succeed. A retry must pass the same `id` as the first try.
   */
  send(mail: Mail, id?: string): Promise<void>
  /** Returns why no mail can be sent, as far as this is visible without sending one; null if no fault is visible. */
  check(): Promise<string | null>
  /** Mail is only written to the log. */
  readonly isLog?: true
}

/** The message is refused permanently: sending it again is pointless. */
export class MailRefused extends Error {}

const MAX_ANSWER_BYTES = 64 * 1024
/** A mail may take this many timeouts in all: a server that sends a little now and then exceeds none of them. */
const MAX_TIMEOUTS = 4

export interface MailerOptions {
  /** For requests to services that the operator configured. */
  upstream: Outbound
  log: Log
  /** Certificate of the authority to trust instead of the well-known ones. */
  authority?: string
}

export function createMailer({ email }: Pick<Config, 'email'>, { upstream, log, authority }: MailerOptions): Mailer {
  const mailers: Record<typeof email.provider, () => Mailer> = {
    log: () => logMailer(log),
    smtp: () => smtpMailer(email, authority),
    mailtrap: () => httpMailer(email, upstream),
  }
  const { send, ...rest } = mailers[email.provider]()
  return {
    ...rest,
    async send(mail, id) {
      if (/[\r\n]/.test(mail.to + mail.subject)) throw new MailRefused('a line break in an address or a subject')
      try {
        await send(mail, id)
      } catch (error) {
        throw toldOf(error)
      }
    },
  }
}

/** Returns the error without addresses: servers quote the recipient's, which neither a log nor a step may hold. */
function toldOf(error: unknown): Error {
  const Kind = error instanceof MailRefused ? MailRefused : Error
  const text = error instanceof Error ? error.message : String(error)
  return new Kind(
    text
      .split(/\s/)
      .map((word) => (word.includes('@') ? '[address]' : word))
      .join(' '),
  )
}

/** Writes every mail as a log line. */
function logMailer(log: Log): Mailer {
  return {
    isLog: true,
    check: async () => null,
    async send({ to, subject, text }) {
      log.info('mail', { to, mailSubject: subject, text })
    },
  }
}

/** Certificates are always checked. With `starttls`, nothing is sent before the connection is encrypted (RFC 3207). */
async function transportOf(
  { smtpHost, smtpPort, smtpTls, smtpUsername, smtpPassword, smtpTimeoutSecs }: Config['email'],
  authority: string | undefined,
) {
  const timeoutMillis = smtpTimeoutSecs * 1000
  const { createTransport } = await import('nodemailer')
  return createTransport({
    host: smtpHost ?? '',
    port: smtpPort,
    secure: smtpTls === 'implicit',
    requireTLS: smtpTls === 'starttls',
    ignoreTLS: smtpTls === 'none',
    ...(smtpUsername !== null && smtpPassword !== null
      ? { auth: { user: smtpUsername, pass: smtpPassword.reveal() } }
      : {}),
    connectionTimeout: timeoutMillis,
    greetingTimeout: timeoutMillis,
    socketTimeout: timeoutMillis,
    ...(authority === undefined ? {} : { tls: { ca: authority } }),
    disableFileAccess: true,
    disableUrlAccess: true,
  })
}

function smtpMailer(config: Config['email'], authority?: string): Mailer {
  const { from, fromName, smtpTimeoutSecs } = config
  const transport = madeOnce(() => transportOf(config, authority))
  const sender = fromName === null ? (from ?? '') : { name: fromName, address: from ?? '' }
  return {
    async send({ to, subject, text }, id) {
      try {
        // Passed as an object, so that a comma in the address cannot add recipients.
        await (
          await transport()
        ).sendMail({
          from: sender,
          to: { name: '', address: to },
          subject,
          // With other line ends, the library would also break lines that need no break, and cut a code in two.
          text: text.replaceAll('\n', '\r\n'),
          ...(id === undefined ? {} : { messageId: `<${id}@${hostOf(from)}>` }),
          signal: AbortSignal.timeout(MAX_TIMEOUTS * smtpTimeoutSecs * 1000),
        })
      } catch (error) {
        throw isRefusal(error) ? new MailRefused((error as Error).message) : error
      }
    },
    async check() {
      try {
        await (await transport()).verify()
        return null
      } catch (error) {
        return error instanceof Error ? error.message : String(error)
      }
    },
  }
}

const hostOf = (address: string | null): string => address?.split('@').at(-1) ?? 'localhost'

/**
 * Returns whether the server refused the message or its recipient permanently (RFC 5321 section 4.2.1). If it refused
 * the login or the sender, the operator can fix that, so a retry may succeed.
 */
function isRefusal(error: unknown): boolean {
  const { code, command, responseCode = 0 } = error as { code?: string; command?: string; responseCode?: number }
  // The library itself refuses an envelope that it cannot send.
  if (code === 'EENVELOPE' && command === 'API') return true
  const isPermanent = responseCode >= 500 && responseCode <= 599
  return isPermanent && ((code === 'EENVELOPE' && command === 'RCPT TO') || code === 'EMESSAGE')
}

/** Statuses that refuse the message itself, as opposed to a fault of the login, the load or the provider. */
const refusingStatuses = [400, 413, 422]

function httpMailer(
  { from, fromName, httpApiUrl, httpToken, httpTimeoutSecs }: Config['email'],
  upstream: Outbound,
): Mailer {
  const sender = { email: from ?? '', ...(fromName === null ? {} : { name: fromName }) }
  return {
    // The provider's API has no request that checks without sending.
    check: async () => null,
    async send({ to, subject, text }) {
      const response = await upstream.fetch(httpApiUrl, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${httpToken?.reveal() ?? ''}` },
        body: JSON.stringify({ from: sender, to: [{ email: to }], subject, text }),
        headersTimeoutMillis: httpTimeoutSecs * 1000,
        bodyTimeoutMillis: httpTimeoutSecs * 1000,
        maxBytes: MAX_ANSWER_BYTES,
      })
      const answer = await response.text()
      if (response.ok) return
      const fault = `the provider returned ${response.status}: ${answer.slice(0, 200)}`
      throw refusingStatuses.includes(response.status) ? new MailRefused(fault) : new Error(fault)
    },
  }
}

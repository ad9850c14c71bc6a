/** Outgoing mail. `send` resolves when the provider has taken the message and rejects when it has not. */
import type { Log } from './log.ts'

export interface Mail {
  to: string
  subject: string
  /** Plain text. A token stands alone on a line of its own. */
  text: string
}

export interface Mailer {
  send(mail: Mail): Promise<void>
}

/** For development: every mail is a log line. */
export function logMailer(log: Log): Mailer {
  return {
    async send({ to, subject, text }) {
      log.info('mail', { to, subject, text })
    },
  }
}

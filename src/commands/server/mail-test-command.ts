import { OperatorError } from '../../base/operator-error.ts'
import { mailRemedy } from '../../platform/network/mail-remedies.ts'
import { createMailer } from '../../platform/network/mailer.ts'
import { processLog } from '../../platform/running/log.ts'
import { createOutbound } from '../../platform/network/outbound.ts'
import { systemResolver } from '../../platform/network/resolver.ts'
import { exitCodes, Misuse } from '../command.ts'
import { configured } from '../configuration.ts'

export const mailTestCommand = configured({
  summary: 'Send a mail with the configured provider.',
  parameters: ['<address>'],
  details: 'Reports whether the provider accepted the message, not whether the message arrived in the mailbox.',
  async run({ terminal, config, positionals: [to = ''] }) {
    if (!/^[^\s@]+@[^\s@]+$/.test(to)) throw new Misuse(`${JSON.stringify(to)} is not an email address`)
    const mailer = createMailer(config, {
      upstream: createOutbound({ resolver: systemResolver({ asksSystem: true }), reach: 'anywhere' }),
      log: processLog(config),
    })
    const { host } = new URL(config.publicUrl)
    try {
      await mailer.send({ to, subject: `Test mail from ${host}`, text: `Mail from ${host} works.\n` })
    } catch (error) {
      const { message } = error as Error
      throw new OperatorError(`${config.email.provider} did not take the mail: ${message}: ${mailRemedy(message)}`, {
        cause: error,
      })
    }
    if (mailer.isLog === true) {
      terminal.err('No mail was sent: email.provider is "log", so it was written to the log.')
      return exitCodes.failed
    }
    terminal.out(`${config.email.provider} accepted the mail to ${to}.`)
    return exitCodes.ok
  },
})

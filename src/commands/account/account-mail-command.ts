import { Misuse } from '../command.ts'
import { restOfInput } from '../prompts.ts'
import { accountCommand, nameOf } from './operator-accounts.ts'

export const accountMailCommand = accountCommand({
  summary: 'Mail the holder of an account.',
  parameters: ['<line>'],
  details: 'The text is one line, or standard input if it is "-".',
  options: { subject: { value: 'TEXT', doc: 'Subject of the mail.' } },
  async run({ server, account, terminal, positionals: [given = ''], options: { subject } }) {
    const content = given === '-' ? await restOfInput(terminal) : given
    if (content.trim() === '') throw new Misuse('there is no text to mail')
    const { logged = false } = await server.post<{ logged?: boolean }>('/xrpc/com.atproto.admin.sendEmail', {
      recipientDid: account.did,
      senderDid: account.did,
      content,
      subject,
    })
    return {
      value: { did: account.did, sent: !logged },
      text: logged
        ? 'No mail was sent: email.provider is "log", so it was written to the log.'
        : `The mail to ${nameOf(account)} was sent.`,
      failed: logged,
    }
  },
})

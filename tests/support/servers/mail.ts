/** What a person finds in the mail. */
import type { Mail } from '../../../src/platform/network/mailer.ts'
import type { TestPds } from './pds.ts'
import { until } from '../until.ts'

/**
 * The code that stands alone on a line of the last mail to the address that has one. Waits for mail that is sent behind
 * an answer.
 */
export async function lastCode(pds: Pick<TestPds, 'mails'>, to: string, count = 1): Promise<string> {
  const codes = () =>
    pds.mails.filter((mail) => mail.to === to).flatMap(({ text }) => text.match(/^[A-Z2-7]{5}-[A-Z2-7]{5}$/m) ?? [])
  await until(() => codes().length >= count)
  return codes().at(-1)!
}

/** What has happened to the account of an address, as mails say, oldest first. */
export async function noticesTo(pds: Pick<TestPds, 'ctx' | 'mails'>, to: string): Promise<Mail[]> {
  await pds.ctx.background.settled()
  await pds.ctx.steps.workOff()
  return pds.mails.filter((mail) => mail.to === to && mail.text.includes('If it was not you'))
}

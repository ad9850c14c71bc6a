/** What a person finds in the mail. */
import type { Mail } from '../../../src/platform/network/mailer.ts'
import { parsedJson } from '../../../src/base/parsed-json.ts'
import type { TestPds } from './pds.ts'
import type { RunningServer } from './program.ts'
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

/** The mails that a program without a mail server has written into its log, which is JSON. */
export function loggedMails({ output }: Pick<RunningServer, 'output'>): Mail[] {
  const lines = output()
    .split('\n')
    .map((line) => parsedJson(line) as { message: string; to: string; mailSubject: string; text: string } | undefined)
  return lines.flatMap((line) =>
    line?.message === 'mail' ? [{ to: line.to, subject: line.mailSubject, text: line.text }] : [],
  )
}

/** What a person finds in the mail. */
import type { TestPds } from './pds.ts'

/** The code that stands alone on a line of the last mail to the address. Waits for mail that is sent behind an answer. */
export async function lastCode(pds: Pick<TestPds, 'mails'>, to: string, count = 1): Promise<string> {
  const ofAddress = () => pds.mails.filter((mail) => mail.to === to)
  while (ofAddress().length < count) await Bun.sleep(1)
  const code = ofAddress().at(-1)!.text.match(/^[A-Z2-7]{5}-[A-Z2-7]{5}$/m)
  if (!code) throw new Error('the mail holds no code')
  return code[0]
}

/** A mail server for whoever sends mail in these tests. */
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'

export interface PostOffice extends AsyncDisposable {
  readonly url: string
  /** The code in the last mail, once so many have come. */
  lastCode(count: number): Promise<string>
}

const CODE = /[A-Z2-7]{5}-[A-Z2-7]{5}/

export async function startPostOffice(): Promise<PostOffice> {
  const mails: string[] = []
  let onMail = () => {}
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    async onData(stream, _session, done) {
      mails.push(Buffer.concat(await Array.fromAsync(stream as AsyncIterable<Buffer>)).toString())
      onMail()
      done()
    },
  })
  server.listen(0, '127.0.0.1')
  await new Promise<void>((resolve) => server.server.once('listening', resolve))
  return {
    url: `smtp://127.0.0.1:${(server.server.address() as AddressInfo).port}`,
    async lastCode(count) {
      while (mails.length < count) await new Promise<void>((resolve) => (onMail = resolve))
      const code = CODE.exec(mails.at(-1)!.replaceAll('=\r\n', ''))
      if (!code) throw new Error('the mail holds no code')
      return code[0]
    },
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => server.close(resolve))
    },
  }
}

/** A browser, without a page, in which somebody signs in to the account page with a wallet. */
import { request, type Answer } from './http.ts'
import type { TestPds } from '../servers/pds.ts'
import { walletPathOf, type WalletPath } from './wallet-consent.ts'

type Server = Pick<TestPds, 'url'>

/** Keeps cookies, and sends forms from pages of ours. */
export class CookieBrowser {
  readonly cookies = new Map<string, string>()

  /** `userAgent` null: the one of the program that tests run in. */
  constructor(
    readonly pds: Server,
    readonly userAgent: string | null = null,
  ) {}

  get #headers(): Record<string, string> {
    return { cookie: this.cookie, ...(this.userAgent !== null && { 'user-agent': this.userAgent }) }
  }

  get cookie(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  async open(path: string): Promise<Answer> {
    return this.#kept(await request(`${this.pds.url}${path}`, { headers: this.#headers }))
  }

  async send(
    path: string,
    fields: Record<string, string> | URLSearchParams,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const answer = await request(`${this.pds.url}${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        origin: this.pds.url,
        ...this.#headers,
        ...headers,
      },
      body: new URLSearchParams(fields).toString(),
    })
    return this.#kept(answer)
  }

  /** Send a form with a file, as a browser does. */
  async upload(path: string, form: FormData, headers: Record<string, string> = {}): Promise<Answer> {
    const init = { method: 'POST', headers: { origin: this.pds.url, ...this.#headers, ...headers }, body: form }
    return this.#kept(await request(`${this.pds.url}${path}`, init))
  }

  #kept(answer: Answer): Answer {
    for (const one of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(one) ?? []
      if (one.includes('Max-Age=0')) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    return answer
  }

  /** Ask for a sign-in, and read the page that waits. `identifier`: the account that is meant. */
  async begin(identifier = ''): Promise<WalletPath & { clientId: string }> {
    const { status, headers } = await this.send('/account/sign-in/wallet', { ...(identifier && { identifier }) })
    const { body } = await this.open(headers.get('location') ?? '/')
    const path = walletPathOf(String(body))
    if (status !== 303 || path === null) throw new Error(`no wallet sign-in began: ${status} ${body}`)
    return { ...path, clientId: this.pds.url }
  }

  complete = (requestId: string, headers: Record<string, string> = {}): Promise<Answer> =>
    this.send('/account/sign-in/wallet/complete', { request_id: requestId }, headers)

  /** Returns the DID of the account that is signed in here; null if nobody is. */
  async signedIn(): Promise<string | null> {
    const { status, body } = await this.open('/account')
    return status === 200 ? (/<code>(did:[^<]+)<\/code>/.exec(body)?.[1] ?? null) : null
  }
}

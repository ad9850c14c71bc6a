/** A browser, without a page, at the operators' console. */
import { PASSWORD } from './account.ts'
import { request, type Answer } from './http.ts'
import type { TestPds } from '../servers/pds.ts'

const AGENT = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0'

export class ConsoleBrowser {
  /** The cookie of the console, as a browser sends it. */
  cookie = ''
  /** The one of forms, which pages with a passkey set. */
  #formCookie = ''

  constructor(
    readonly pds: Pick<TestPds, 'url'>,
    readonly agent = AGENT,
  ) {}

  async open(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.#kept(
      await request(`${this.pds.url}${path}`, {
        headers: { cookie: this.#cookies, 'user-agent': this.agent, ...headers },
      }),
    )
  }

  /** Send a form as a page of this server does. */
  async send(path: string, fields: Record<string, string>, headers: Record<string, string> = {}): Promise<Answer> {
    return this.#kept(
      await request(`${this.pds.url}${path}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          'sec-fetch-site': 'same-origin',
          cookie: this.#cookies,
          'user-agent': this.agent,
          ...headers,
        },
        body: new URLSearchParams(fields).toString(),
      }),
    )
  }

  get #cookies(): string {
    return [this.cookie, this.#formCookie].filter(Boolean).join('; ')
  }

  #kept(answer: Answer): Answer {
    for (const one of answer.headers.getSetCookie()) {
      if (one.startsWith('holdfast-form=')) this.#formCookie = one.split(';', 1)[0]!
      if (!one.includes('holdfast-operator=')) continue
      this.cookie = one.includes('Max-Age=0') ? '' : one.split(';', 1)[0]!
    }
    return answer
  }

  signIn = (identifier: string, password = PASSWORD): Promise<Answer> =>
    this.send('/admin/sign-in', { identifier, password })

  /** The token of forms in pages of this session. */
  async formToken(): Promise<string> {
    const { body } = await this.open('/admin')
    return /name="console_token" value="([^"]+)"/.exec(String(body))?.[1] ?? ''
  }

  /** Do what a form of the console does. */
  act = async (act: string, fields: Record<string, string>): Promise<Answer> =>
    this.send('/admin/act', { act, back: '/admin', reason: 'a test', console_token: await this.formToken(), ...fields })
}

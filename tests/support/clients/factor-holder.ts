/** A person with a browser who manages the second factors of an account. */
import { TOTP, URI } from 'otpauth'
import type { TestAccount } from './account.ts'
import { hiddenFields } from './oauth-client.ts'
import { PasskeyDevice, type PageOptions, type Tampering } from './passkey-device.ts'
import { CookieBrowser } from './wallet-sign-in.ts'
import type { TestPds } from '../servers/pds.ts'
import type { Answer } from './http.ts'

const STEP_MILLIS = 30_000

export class FactorHolder {
  readonly browser: CookieBrowser
  app: TOTP | null = null
  recoveryCodes: string[] = []

  /** A server without a clock of its own has that of the machine. */
  constructor(
    readonly pds: Pick<TestPds, 'url'> & Partial<Pick<TestPds, 'clock'>>,
    readonly account: TestAccount,
  ) {
    this.browser = new CookieBrowser(pds)
  }

  get path(): string {
    return `/account/factors?account=${encodeURIComponent(this.account.did)}`
  }

  /** The code that the app shows, or showed some steps ago. */
  code(steps = 0): string {
    return this.app!.generate({ timestamp: (this.pds.clock?.now() ?? Date.now()) + steps * STEP_MILLIS })
  }

  /** The code of the next step, once it has begun: none was used yet. */
  nextCode(): string {
    this.pds.clock?.advance({ secs: STEP_MILLIS / 1000 })
    return this.code()
  }

  /** Signs in at the account page. Gives `code` at the second step, if there is one. */
  async signIn(code = '', browser = this.browser): Promise<Answer> {
    const { handle: identifier, password } = this.account
    const first = await browser.send('/account/sign-in', { identifier, password })
    if (first.status === 303) return first
    return browser.send('/account/sign-in', { ...hiddenFields(first.body), factor_code: code })
  }

  /**
   * Presses a button of the page of factors, `more` being other fields of its form, and enters the password; not the
   * code that comes next, if any.
   */
  async change(change: string, browser = this.browser, more: Record<string, string> = {}): Promise<Answer> {
    const { body } = await browser.open(this.path)
    const { form_token = '' } = hiddenFields(body)
    const asked = await browser.send(this.path, { account: this.account.did, form_token, change, ...more })
    return browser.send(this.path, { ...hiddenFields(asked.body), password: this.account.password })
  }

  /** The same with the code. */
  async changeWith(change: string, code: string): Promise<Answer> {
    const asked = await this.change(change)
    return this.browser.send(this.path, { ...hiddenFields(asked.body), factor_code: code })
  }

  /** From a signed-in browser to an app that counts. */
  async addApp(): Promise<void> {
    const { body } = await this.change('add-app')
    this.app = appOn(body)
    const made = await this.browser.send(this.path, { ...hiddenFields(body), code: this.code() })
    this.recoveryCodes = codesOn(made.body)
    if (this.recoveryCodes.length !== 10) throw new Error(`no app was added: ${made.status} ${made.body}`)
  }

  /** From a signed-in browser to the page on which a device makes a passkey. `code` is one of a factor, if any. */
  async openNewPasskey(
    code: string | (() => Promise<string>) = '',
  ): Promise<{ fields: Record<string, string>; options: PageOptions }> {
    const asked = await this.change('add-passkey')
    const factor_code = typeof code === 'string' ? code : await code()
    const { body } =
      factor_code === '' ? asked : await this.browser.send(this.path, { ...hiddenFields(asked.body), factor_code })
    const options = passkeyOptionsOn(body)
    if (options?.rp === undefined) throw new Error(`no passkey can be made: ${body}`)
    return { fields: hiddenFields(body), options }
  }

  /** Adds a passkey of a device. Returns the device. */
  async addPasskey(
    device = new PasskeyDevice(this.pds.url),
    { name = 'Key', code = '' }: { name?: string; code?: string | (() => Promise<string>) } = {},
  ): Promise<PasskeyDevice> {
    const { fields, options } = await this.openNewPasskey(code)
    const made = await this.browser.send(this.path, { ...fields, name, passkey: device.create(options) })
    const codes = codesOn(made.body)
    if (codes.length > 0) this.recoveryCodes = codes
    else if (made.status !== 303) throw new Error(`no passkey was added: ${made.status} ${made.body}`)
    return device
  }

  /** Signs in at the account page with a passkey alone. */
  async enterWith(device: PasskeyDevice, browser = this.browser, tampering: Tampering = {}): Promise<Answer> {
    const { body } = await browser.open('/account/sign-in')
    return browser.send('/account/sign-in', {
      ...hiddenFields(body),
      passkey: device.get(passkeyOptionsOn(body)!, tampering),
    })
  }
}

/** What a page asks a browser for that is to make or use a passkey; null if it asks for none. */
export function passkeyOptionsOn(page: unknown): PageOptions | null {
  const [, options] = /data-options="([^"]+)"/.exec(String(page)) ?? []
  return options === undefined
    ? null
    : (JSON.parse(options.replaceAll('&quot;', '"').replaceAll('&amp;', '&')) as PageOptions)
}

/** The app that scans the code on a page. */
export function appOn(page: string): TOTP {
  const [, uri] = /href="(otpauth:[^"]+)"/.exec(page) ?? []
  if (uri === undefined) throw new Error(`the page has no code: ${page}`)
  const app = URI.parse(uri.replaceAll('&amp;', '&'))
  if (!(app instanceof TOTP)) throw new Error('the page has no code of an authenticator app')
  return app
}

export const codesOn = (page: string): string[] =>
  [...page.matchAll(/<code>([a-z2-7]{4}(?:-[a-z2-7]{4}){3})<\/code>/g)].map(([, code]) => code!)

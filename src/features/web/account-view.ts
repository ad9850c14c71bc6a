/** What the account page shows, and what its sections have in common. */
import { html, type Html } from '../../http/html.ts'
import type { Account } from '../accounts/accounts.ts'
import type { AppPassword, ListedSession } from '../auth/auth.ts'
import type { OAuthSession } from '../oauth/oauth.ts'
import type { KnownBrowser } from './device-store.ts'
import type { Device } from './devices.ts'
import type { Fault } from './faults.ts'
import { errorNote, goodNote, hidden } from './page-parts.ts'

/** What forms are about. Each is the id of a place in the page. */
export type Section = 'account' | 'apps' | 'app-passwords' | 'sessions' | 'handle' | 'email' | 'confirm-email' | 'password'

export interface AccountView {
  account: Account
  device: Device
  apps: readonly OAuthSession[]
  appPasswords: readonly AppPassword[]
  sessions: readonly ListedSession[]
  browsers: readonly KnownBrowser[]
  /** What happened to the form that was sent. */
  outcome: Outcome | null
  /** An app password that was just made; shown this once. */
  secret: { name: string; password: string } | null
  /** A code was mailed with which the email address may be changed. */
  awaitsEmailCode: boolean
}

export interface Outcome {
  section: Section
  fault: Fault | null
  notice: string | null
  /** What was typed, to be mended. */
  typed: URLSearchParams | null
}

/** A form that acts for the account. Its address leads back to the page when it is opened by itself. */
export const accountForm = ({ account, device }: Pick<AccountView, 'account' | 'device'>, action: string, content: Html, parameters: Record<string, string> = {}): Html => html`
<form method="post" action="/account/${action}?${new URLSearchParams({ account: account.did, ...parameters }).toString()}" class="stack">
  ${hidden({ form_token: device.formToken, account: account.did })}
  ${content}
</form>`

export const outcomeOf = ({ outcome }: AccountView, section: Section): Html | null =>
  outcome?.section === section ? html`${errorNote(outcome.fault)}${goodNote(outcome.notice)}` : null

export const accountName = ({ handle, did }: Account): string => (handle === null ? did : `@${handle}`)

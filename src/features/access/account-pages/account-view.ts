/** The data of the account page, and the parts that its sections share. */
import { html, type Html, type Wording } from '../../../http/html.ts'
import type { KeptArchives } from '../../data/account-archives/account-archives.ts'
import type { StoredEvent } from '../../identity/account-events/account-events.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import type { InviteCode } from '../../identity/invites/invites.ts'
import type { Handle } from '../../../protocol/identifiers.ts'
import type { ListedFactors } from '../factors/factors.ts'
import type { ListedAgent } from '../../agents/agents/agents.ts'
import type { AppPassword, ListedSession, ListedWalletSession } from '../sessions/sessions.ts'
import type { PushRegistration } from '../../push/notifications/notifications.ts'
import type { Consent, OAuthSession } from '../oauth/oauth.ts'
import type { Transfer } from '../../identity/transfers/transfers.ts'
import type { Device as WalletDevice } from '../wallet-devices/wallet-devices.ts'
import type { Quota } from '../../identity/quotas/quotas.ts'
import type { ListedDelegation } from '../delegations/delegations.ts'
import { accountTexts as texts } from './account-texts.ts'
import { errorNote, goodNote, hidden, type Fault } from '../page-parts/page-parts.ts'
import { holderUrl, type Device, type ListedBrowser } from '../pages/pages.ts'

/** Sections with forms. Each name is an id in the page. */
export type Section =
  | 'account'
  | 'wallet'
  | 'apps'
  | 'agents'
  | 'pushes'
  | 'app-passwords'
  | 'sessions'
  | 'handle'
  | 'handles'
  | 'email'
  | 'confirm-email'
  | 'password'
  | 'archive'
  | 'deactivate'
  | 'delete'

/** Lists that may be long. Each is in the section of the same name. */
export const lists = ['apps', 'agents', 'pushes', 'app-passwords', 'sessions', 'invites'] as const
export type List = (typeof lists)[number]

/** The pending requests, transfers and devices of a wallet's holder. */
export interface WalletMatters {
  /** Requests that name the account and wait for its wallet. Strangers can make them. */
  consents: readonly Consent[]
  /** The running transfer to another device; null if there is none. */
  transfer: Transfer | null
  devices: readonly WalletDevice[]
}

export interface AccountView {
  account: Account
  device: Device
  apps: readonly OAuthSession[]
  agents: readonly ListedAgent[]
  appPasswords: readonly AppPassword[]
  sessions: readonly ListedSession[]
  browsers: readonly ListedBrowser[]
  walletSessions: readonly ListedWalletSession[]
  /** The list that is shown alone, from row `from`; null for the whole page, with the first rows of all lists. */
  alone: { list: List; from: number } | null
  wallet: WalletMatters
  factors: ListedFactors
  /** The newest events. */
  events: readonly StoredEvent[]
  storage: { used: Quota; quota: Quota }
  /** Codes that can still be given away. */
  invites: readonly InviteCode[]
  /** Who acts for the account, and for whom it acts. */
  sharing: { delegates: readonly ListedDelegation[]; shared: readonly ListedDelegation[] }
  /** The account's handles except the first. */
  furtherHandles: readonly Handle[]
  /** Devices that get pushes. */
  pushDevices: readonly PushRegistration[]
  /** Null if this server makes no archives regularly. */
  keptArchives: KeptArchives | null
  /** The result of the form that was just sent; null if none was. */
  outcome: Outcome | null
  /** Whether the account is on its way here from another server. */
  isMoving: boolean
  /** An app password that was just created; shown only once. */
  secret: { name: string; password: string } | null
  /** Whether a code for a change of the email address was mailed. */
  awaitsEmailCode: boolean
}

export interface Outcome {
  section: Section
  fault: Fault | null
  notice: Wording | null
  /** What was typed, so that it can be corrected. */
  typed: URLSearchParams | null
}

/** Most rows of a list, on the whole page and on a page of its own. No list then takes more than 60 kB. */
export const BEGINNING = 4
const ROWS_ALONE = 25

/** Returns the rows of a list that the page shows, and the link to the others. */
export function partOf<Row>(
  view: AccountView,
  list: List,
  rows: readonly Row[],
  beginning: readonly Row[] = rows.slice(0, BEGINNING),
): { shown: readonly Row[]; more: Html | null } {
  const link = (from: number, words: Wording) =>
    html`<p class="links"><a href="${holderUrl('/account', view.account.did, { list, from: String(from) })}">${words}</a></p>`
  if (view.alone === null)
    return {
      shown: beginning,
      more: beginning.length < rows.length ? link(0, texts.showAll({ total: rows.length })) : null,
    }
  const next = view.alone.from + ROWS_ALONE
  return { shown: rows.slice(view.alone.from, next), more: next < rows.length ? link(next, texts.next) : null }
}

/** A form that acts for the account. Its address redirects to the page if it is opened directly. */
export const accountForm = (
  { account, device }: Pick<AccountView, 'account' | 'device'>,
  action: string,
  content: Html,
  parameters: Record<string, string> = {},
): Html => html`
<form method="post" action="${holderUrl(`/account/${action}`, account.did, parameters)}" class="stack">
  ${hidden({ form_token: device.formToken, account: account.did })}
  ${content}
</form>`

/** Like `accountForm`, with a file. */
export const uploadForm = (
  { account, device }: Pick<AccountView, 'account' | 'device'>,
  action: string,
  content: Html,
): Html => html`
<form method="post" enctype="multipart/form-data" action="${holderUrl(`/account/${action}`, account.did)}" class="stack">
  ${hidden({ form_token: device.formToken, account: account.did })}
  ${content}
</form>`

export const outcomeOf = ({ outcome }: AccountView, section: Section): Html | null =>
  outcome?.section === section ? html`${errorNote(outcome.fault)}${goodNote(outcome.notice)}` : null

/** The account page of one of the accounts that are signed in. */
export const accountUrl = (did: string): string => holderUrl('/account', did)

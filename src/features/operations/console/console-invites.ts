/** Invite codes, claim codes, and who waits for an account. */
import { html, type Html } from '../../../http/html.ts'
import { field } from '../../access/page-parts/page-parts.ts'
import { ask, type Desk } from './console-session.ts'
import { actForm, framed, listOf, minuteOf, moreLink, noteRow, refusalNote } from './console-layout.ts'

const ROWS = 25
const BACK = '/admin/invites'

interface Invites {
  codes: {
    code: string
    available: number
    disabled: boolean
    forAccount: string
    createdAt: string
    uses: unknown[]
  }[]
  cursor?: string
}
interface Claims {
  codes: { code: string; status: string; domain?: string; createdAt: string; expiresAt: string }[]
}

export async function invitesPage(desk: Desk): Promise<Response> {
  const cursor = desk.call.url.searchParams.get('cursor')
  const more = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
  const invites = await ask(desk, `/xrpc/com.atproto.admin.getInviteCodes?sort=recent&limit=${ROWS}${more}`)
  const claims = await ask(desk, `/v1/accounts/claim-codes?limit=${ROWS}`)
  const { codes, cursor: next } = invites.ok ? (invites.body as Invites) : { codes: [], cursor: undefined }
  const claimed = claims.ok ? (claims.body as Claims).codes : []
  return framed(desk, {
    title: 'Invites',
    body: html`
<section class="card">
  <h2>Invite codes</h2>
  ${refusalNote(invites)}
  ${actForm(desk, { id: 'invite', act: 'invite', back: BACK, button: 'New invite code', inputs: field({ name: 'uses', label: 'How many accounts it is for', value: '1', required: true, maxLength: 4, digits: { pattern: '[0-9]{1,4}', says: 'A number' } }) })}
  ${listOf(
    codes.map(({ code, available, disabled, forAccount, createdAt, uses }, i) =>
      noteRow(
        html`<span class="mono">${code}</span>`,
        [
          html`${disabled ? 'disabled' : `${uses.length} of ${available} used`}, for ${forAccount}`,
          html`made ${minuteOf(createdAt)}`,
        ],
        disabled
          ? null
          : actForm(desk, {
              id: `invite-${i}`,
              act: 'disable-invite',
              back: BACK,
              button: 'Disable',
              fields: { code },
            }),
      ),
    ),
    'There are no invite codes.',
  )}
  ${moreLink(desk, next)}
</section>
<section class="card">
  <div class="tight"><h2>Claim codes</h2><p class="quiet">For one account each, for a day.</p></div>
  ${refusalNote(claims)}
  ${actForm(desk, { id: 'claim', act: 'claim', back: BACK, button: 'New claim code', inputs: domainChoice(desk.call.ctx.config.availableUserDomains) })}
  ${listOf(
    claimed.map(({ code, status, domain, createdAt, expiresAt }, i) =>
      noteRow(
        html`<span class="mono">${code}</span>`,
        [
          domain === undefined ? status : `${status}, for handles under ${domain}`,
          html`made ${minuteOf(createdAt)}, expires ${minuteOf(expiresAt)}`,
        ],
        status !== 'pending'
          ? null
          : actForm(desk, { id: `claim-${i}`, act: 'revoke-claim', back: BACK, button: 'Revoke', fields: { code } }),
      ),
    ),
    'There are no claim codes.',
  )}
</section>`,
  })
}

/** A community may have a domain of its own; its codes are good for handles there. */
const domainChoice = (domains: readonly string[]): Html | null =>
  domains.length < 2
    ? null
    : html`
<div class="field">
  <label for="domain">Handles under</label>
  <select id="domain" name="domain">${['', ...domains].map((domain) => html`<option value="${domain}">${domain || 'any domain'}</option>`)}</select>
</div>`

interface Waitlist {
  signups: { email: string; handle?: string; createdAt: string }[]
  total: number
  cursor?: string
}

export async function waitlistPage(desk: Desk): Promise<Response> {
  const { searchParams } = desk.call.url
  const answer = await ask(
    desk,
    `/v1/admin/waitlist?limit=${ROWS}&cursor=${encodeURIComponent(searchParams.get('cursor') ?? '')}`,
  )
  const { signups, total, cursor } = answer.ok
    ? (answer.body as Waitlist)
    : { signups: [], total: 0, cursor: undefined }
  return framed(desk, {
    title: 'Waitlist',
    body: html`
<section class="card">
  ${refusalNote(answer)}
  <p class="quiet">${total} people wait for an account.</p>
  ${listOf(
    signups.map(({ email, handle, createdAt }, i) =>
      noteRow(
        email,
        [handle !== undefined && `wants ${handle}`, html`since ${minuteOf(createdAt)}`],
        html`<div class="stack">${actForm(desk, { id: `invite-${i}`, act: 'waitlist-invite', back: '/admin/waitlist', button: 'Invite', fields: { email } })}${actForm(desk, { id: `remove-${i}`, act: 'waitlist-remove', back: '/admin/waitlist', button: 'Remove', fields: { email } })}</div>`,
      ),
    ),
    'There are no entries.',
  )}
  ${moreLink(desk, cursor)}
</section>`,
  })
}

/** Invite codes, claim codes, and the waiting list. */
import { html, plainName, type Html } from '../../../http/html.ts'
import type { InsideAnswer } from '../../../http/inside.ts'
import { field } from '../../access/page-parts/page-parts.ts'
import { ask, type Desk } from './console-session.ts'
import {
  actForm,
  actorName,
  bodyOf,
  FORM_ROWS,
  framed,
  listOf,
  minuteOf,
  moreLink,
  noteRow,
  refusalNote,
  TWO_FORM_ROWS,
  wordFor,
} from './console-layout.ts'
import { consoleTexts } from './console-texts.ts'
import { roomsTexts as texts } from './rooms-texts.ts'

const MAX_ADDRESS_CHARS = 320
const CLAIMS = 'claims'
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
  cursor?: string
}

const claimStates = {
  pending: texts.pending,
  redeemed: texts.redeemed,
  expired: texts.expired,
  revoked: texts.revoked,
} as const

export async function invitesPage(desk: Desk): Promise<Response> {
  const { searchParams } = desk.call.url
  const cursor = searchParams.get('cursor')
  const more = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
  const invites = await ask(desk, `/xrpc/com.atproto.admin.getInviteCodes?sort=recent&limit=${FORM_ROWS}${more}`)
  const place = new URLSearchParams({ limit: String(FORM_ROWS), cursor: searchParams.get(CLAIMS) ?? '' })
  const claims = await ask(desk, `/v1/accounts/claim-codes?${place}`)
  return framed(desk, {
    title: consoleTexts.invites,
    body: html`
${invitesPart(desk, invites)}
${claimsPart(desk, claims)}`,
  })
}

function invitesPart(desk: Desk, invites: InsideAnswer): Html {
  const { codes, cursor: next } = bodyOf<Invites>(invites, { codes: [] })
  return html`
<section class="card">
  <h2>${texts.inviteCodes}</h2>
  ${refusalNote(invites)}
  ${actForm(desk, { id: 'invite', act: 'invite', back: BACK, button: texts.newInvite, inputs: field({ name: 'uses', label: texts.howMany, value: '1', required: true, maxLength: 4, digits: { pattern: '[0-9]{1,4}', says: texts.aNumber } }) })}
  ${listOf(
    codes.map(({ code, available, disabled, forAccount, createdAt, uses }, i) =>
      noteRow(
        html`<span class="copy">${code}</span>`,
        [
          disabled
            ? texts.inviteDisabled({ account: actorName(forAccount) })
            : texts.inviteUsed({ used: uses.length, available, account: actorName(forAccount) }),
          texts.madeAt({ time: minuteOf(createdAt) }),
        ],
        disabled
          ? null
          : actForm(desk, {
              id: `invite-${i}`,
              act: 'disable-invite',
              back: BACK,
              button: texts.disable,
              fields: { code },
            }),
      ),
    ),
    texts.noInvites,
  )}
  ${moreLink(desk, next)}
</section>`
}

function claimsPart(desk: Desk, claims: InsideAnswer): Html {
  const { codes: claimed, cursor: nextClaims } = bodyOf<Claims>(claims, { codes: [] })
  return html`
<section class="card">
  <div class="tight"><h2>${texts.claimCodes}</h2><p class="quiet">${texts.claimAbout}</p></div>
  ${refusalNote(claims)}
  ${actForm(desk, { id: 'claim', act: 'claim', back: BACK, button: texts.newClaim, inputs: domainChoice(desk.call.ctx.config.availableUserDomains) })}
  ${listOf(
    claimed.map(({ code, status, domain, createdAt, expiresAt }, i) =>
      noteRow(
        html`<span class="copy">${code}</span>`,
        [
          domain === undefined
            ? wordFor(claimStates, status)
            : texts.underDomain({ state: wordFor(claimStates, status), domain }),
          texts.madeExpires({ time: minuteOf(createdAt), end: minuteOf(expiresAt) }),
        ],
        status !== 'pending'
          ? null
          : actForm(desk, {
              id: `claim-${i}`,
              act: 'revoke-claim',
              back: BACK,
              button: consoleTexts.revoke,
              fields: { code },
            }),
      ),
    ),
    texts.noClaims,
  )}
  ${moreLink(desk, nextClaims, CLAIMS)}
</section>`
}

/** A community may have a domain of its own. Its codes are only valid for handles there. */
const domainChoice = (domains: readonly string[]): Html | null =>
  domains.length < 2
    ? null
    : html`
<div class="field">
  <label for="domain">${texts.handlesUnder}</label>
  <select id="domain" name="domain">${['', ...domains].map((domain) => html`<option value="${domain}">${domain || texts.anyDomain}</option>`)}</select>
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
    `/v1/admin/waitlist?limit=${TWO_FORM_ROWS}&cursor=${encodeURIComponent(searchParams.get('cursor') ?? '')}`,
  )
  const { signups, total, cursor } = bodyOf<Waitlist>(answer, { signups: [], total: 0 })
  return framed(desk, {
    title: consoleTexts.waitlist,
    body: html`
<section class="card">
  ${refusalNote(answer)}
  <p class="quiet">${texts.waiting({ count: total })}</p>
  ${listOf(
    signups.map(({ email, handle, createdAt }, i) =>
      noteRow(
        plainName(email, MAX_ADDRESS_CHARS),
        [handle !== undefined && texts.wants({ handle }), consoleTexts.since({ time: minuteOf(createdAt) })],
        html`<div class="stack">${actForm(desk, { id: `invite-${i}`, act: 'waitlist-invite', back: '/admin/waitlist', button: texts.invite, fields: { email } })}${actForm(desk, { id: `remove-${i}`, act: 'waitlist-remove', back: '/admin/waitlist', button: texts.remove, fields: { email } })}</div>`,
      ),
    ),
    texts.noEntries,
  )}
  ${moreLink(desk, cursor)}
</section>`,
  })
}

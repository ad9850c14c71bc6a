/**
 * The public waiting list for accounts. The response to an address that is already listed is the same, after the same
 * time, so as not to reveal who is on the list. Joining the list resolves nothing and sends no email.
 */
import { Type } from '@sinclair/typebox'
import { route } from '../../../http/endpoint.ts'
import { invalidRequest, notFound, Refusal } from '../../../http/errors.ts'
import type { Feature } from '../../../http/feature.ts'
import type { RequestBody } from '../../../http/body.ts'
import { readJson } from '../../../http/json-input.ts'
import { charge } from '../../../http/limiting.ts'
import { personsLanguage } from '../../../http/page-language.ts'
import { bySeq, pageOf } from '../../../http/paged-list.ts'
import { parseHandle, wireTime } from '../../../protocol/identifiers.ts'
import { languages } from '../../../protocol/languages.ts'
import { actorOf, operator, recordAudit } from '../../operations/operators/operators.ts'
import { accountOf } from '../accounts/accounts.ts'
import { makeCodes, OPERATOR } from '../invites/invites.ts'
import { addMail, invitedMail } from '../mails/mails.ts'
import { countEntries, deleteEntry, insertEntry, listEntries, takeEntry } from './waitlist-store.ts'

const MIN_EMAIL_LENGTH = 3
const MAX_EMAIL_LENGTH = 320
const MAX_PAGE_ROWS = 100
const addressPattern = /^[^@\s\p{Cc}<>()[\]\\,;:"]+@[^@\s\p{Cc}<>()[\]\\,;:"]+$/u

/**
 * Returns the address in lower case. Returns null unless the text has one `@` with text on both sides, no spaces or
 * control characters, and none of the characters that separate or quote addresses in a mail header (RFC 5322, 3.2.3).
 */
function parseEmail(text: string): string | null {
  const email = text.trim().toLowerCase()
  const plausible = email.length >= MIN_EMAIL_LENGTH && email.length <= MAX_EMAIL_LENGTH && addressPattern.test(email)
  return plausible ? email : null
}

const notListed = () => notFound('The address is not on the list')

/** Reads the address that an operator sends, from the body and not from the path, because paths end up in logs. */
async function readAddress(body: RequestBody): Promise<string> {
  const { email } = await readJson(body, Type.Object({ email: Type.String() }))
  return email.trim().toLowerCase()
}

export const waitlist: Feature = {
  name: 'waitlist',
  capabilities: ['waitlist'],
  async forgetAccount(_, tx, did) {
    const account = await accountOf(tx, did)
    // Only if the address is confirmed, because anyone may sign up with someone else's address.
    if (account?.email && account.emailConfirmedAt !== null) await deleteEntry(tx, account.email)
  },
  routes: [
    route('POST', '/waitlist', {
      limit: 'waitlist',
      async handler(call) {
        const { ctx, body } = call
        // Checked here and not as a capability of the route, because the list opens and closes while the server runs.
        if (!ctx.config.waitlist.enabled) throw notFound()
        const given = await readJson(body, Type.Object({ email: Type.String(), handle: Type.Optional(Type.String()) }))
        const email = parseEmail(given.email)
        if (email === null) throw invalidRequest('email is not a valid email address')
        const handleText = (given.handle ?? '').trim().replace(/^@/, '')
        const handle = handleText === '' ? null : parseHandle(handleText.toLowerCase())
        if (handle === null && handleText !== '')
          throw new Refusal(400, 'InvalidHandle', 'handle is not a valid handle')
        // Also charged for an address that is already listed, because the response must not reveal that.
        await charge(call, { name: 'waitlistTotal', key: 'all', from: call.client })
        await ctx.db.transaction((tx) =>
          insertEntry(tx, { email, handle, language: personsLanguage(call), now: ctx.clock.now() }),
        )
        return { status: 'ok' }
      },
    }),

    route('GET', '/v1/admin/waitlist', {
      auth: operator('invite'),
      async handler({ ctx: { db }, url: { searchParams } }) {
        const { rows, cursor } = await pageOf(
          searchParams,
          { cursor: bySeq, maxRows: MAX_PAGE_ROWS },
          (before, limit) => listEntries(db, { beforeSeq: before?.seq ?? null, limit }),
        )
        return {
          signups: rows.map(({ email, handle, createdAt }) => ({
            email,
            handle: handle ?? undefined,
            createdAt: wireTime(createdAt),
          })),
          total: await countEntries(db),
          cursor,
        }
      },
    }),

    /**
     * Take an address off the list and mail it an invite code, or only the place to sign up if the sign-up takes no
     * code.
     */
    route('POST', '/v1/admin/waitlist/invite', {
      auth: operator('invite'),
      async handler(call) {
        const { ctx, caller, body } = call
        const email = await readAddress(body)
        await ctx.db.transaction(async (tx) => {
          const entry = await takeEntry(tx, email)
          if (entry === null) throw notListed()
          const language = languages.find((one) => one === entry.language) ?? null
          await recordAudit(call, tx, { actor: actorOf(caller), action: 'waitlist_invited' })
          const [code = null] = ctx.config.inviteCodeRequired
            ? await makeCodes(ctx, tx, { forAccount: OPERATOR, createdBy: OPERATOR, uses: 1, count: 1 })
            : []
          const mail = await invitedMail(ctx, { email, language }, code)
          await addMail(ctx, tx, { key: `waitlist ${email}`, what: 'waitlist', causedBy: 'operator', mail })
        })
        return { status: 'ok' }
      },
    }),

    route('POST', '/v1/admin/waitlist/remove', {
      auth: operator('invite'),
      async handler(call) {
        const { ctx, caller, body } = call
        const email = await readAddress(body)
        await ctx.db.transaction(async (tx) => {
          if ((await deleteEntry(tx, email)) === 0) throw notListed()
          await recordAudit(call, tx, { actor: actorOf(caller), action: 'waitlist_removed' })
        })
        return { status: 'ok' }
      },
    }),
  ],
}

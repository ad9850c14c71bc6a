/**
 * The public waiting list for accounts. The response to an address that is already listed is the same, after the same
 * time, so as not to reveal who is on the list. Nothing is resolved and no email is sent.
 */
import { Type } from '@sinclair/typebox'
import { route } from '../../../http/endpoint.ts'
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import type { Feature } from '../../../http/feature.ts'
import { readJson } from '../../../http/json-input.ts'
import { bySeq, pageOf } from '../../../http/paged-list.ts'
import { parseHandle, wireTime } from '../../../protocol/identifiers.ts'
import { operator } from '../../operations/operators/operators.ts'
import { countEntries, insertEntry, listEntries } from './waitlist-store.ts'

const MIN_EMAIL_LENGTH = 3
const MAX_EMAIL_LENGTH = 320
const MAX_PAGE_ROWS = 100

/**
 * Returns the address in lower case. Null unless it has one `@` with text on both sides, no spaces and no control
 * characters.
 */
function parseEmail(text: string): string | null {
  const email = text.trim().toLowerCase()
  const plausible =
    email.length >= MIN_EMAIL_LENGTH && email.length <= MAX_EMAIL_LENGTH && /^[^@\s\p{Cc}]+@[^@\s\p{Cc}]+$/u.test(email)
  return plausible ? email : null
}

export const waitlist: Feature = {
  name: 'waitlist',
  capabilities: ['waitlist'],
  routes: [
    route('POST', '/waitlist', {
      capability: 'waitlist',
      limit: 'waitlist',
      async handler({ ctx, body }) {
        const given = await readJson(body, Type.Object({ email: Type.String(), handle: Type.Optional(Type.String()) }))
        const email = parseEmail(given.email)
        if (email === null) throw invalidRequest('email is not a valid email address')
        const handleText = (given.handle ?? '').trim().replace(/^@/, '')
        const handle = handleText === '' ? null : parseHandle(handleText.toLowerCase())
        if (handle === null && handleText !== '')
          throw new Refusal(400, 'InvalidHandle', 'handle is not a valid handle')
        await ctx.db.transaction((tx) => insertEntry(tx, { email, handle, now: ctx.clock.now() }))
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
  ],
}

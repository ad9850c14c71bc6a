/**
 * Who may call what: every method with every kind of credential. What is asked is only whether the guard lets it pass.
 */
import { describe, expect, test } from 'bun:test'
import { features } from '../../../src/features.ts'
import { request, type Answer } from '../../support/clients/http.ts'
import { openStage, type Kind, subjectsOf } from './callers.ts'
import { ANYBODY, DRAFTS, EXTENSIONS, servedMethods, SUBSCRIPTIONS, type Served } from './served-methods.ts'
import { setUp } from '../../support/set-up.ts'

const stage = setUp(openStage)

const placeholders = servedMethods(subjectsOf())
/** With the account that exists once the server runs. */
const actual = ({ nsid }: Served): Served =>
  servedMethods(subjectsOf(stage.alice.did)).find((served) => served.nsid === nsid)!

const pathOf = ({ nsid, query }: Served) => (query === undefined ? nsid : `${nsid}?${new URLSearchParams(query)}`)
/** Nobody takes this as input, and authentication comes before input. */
const inputOf = ({ verb }: Served) => (verb === 'POST' ? { json: [] } : {})
const call = (served: Served, headers: Record<string, string>) =>
  request(`${stage.pds.url}/xrpc/${pathOf(served)}`, { ...inputOf(served), headers })

interface Refused {
  status: number
  error: string
  message: string
}
const invalidToken = (message: string): Refused => ({ status: 400, error: 'InvalidToken', message })
const UNVERIFIED = invalidToken('Token could not be verified')
const WRONG_SCOPE = invalidToken('Bad token scope')
const WRONG_SCOPE_BODY = { error: 'InvalidToken', message: 'Bad token scope' }
const WRONG_SCHEME = invalidToken('Unexpected authorization type')
const MISSING: Refused = { status: 401, error: 'AuthMissing', message: 'Authentication Required' }
const NO_OPERATOR: Refused = { status: 401, error: 'AuthenticationRequired', message: 'Authentication Required' }

/** What a caller hears that the method is not for. */
function refusalFor({ callers }: Served, kind: Kind): Refused | Omit<Refused, 'message'> {
  if (callers === 'B') return NO_OPERATOR
  // A token that is none of a service is told so by the checks for those.
  if (callers === 'BM') return kind === '-' ? NO_OPERATOR : { status: 401, error: 'BadJwtType' }
  if (callers === '-SM') return { status: 401, error: kind === 'B' ? 'AuthenticationRequired' : 'BadJwtType' }
  if (callers === 'FVAS' && kind === 'M') return { status: 403, error: 'AccountNotFound' }
  if (kind === '-') return MISSING
  if (kind === 'B') return WRONG_SCHEME
  if (kind === 'R' || kind === 'M' || callers === 'R') return UNVERIFIED
  return WRONG_SCOPE
}

const passes = ({ status, body }: Answer) =>
  status !== 401 && status !== 403 && body.error !== 'InvalidToken' && body.error !== 'ExpiredToken'

/**
 * The refresh token is used up by a refresh, and `deleteSession` ends it: both read their body first, which is refused.
 */
const KINDS: Kind[] = ['-', 'F', 'V', 'A', 'T', 'R', 'B', 'M']

/** An app asks again with the scope that it was told is missing, until it hears of no more. */
async function scopesAskedFor(served: Served): Promise<string> {
  const scopes: string[] = []
  for (;;) {
    const { status, body } = await stage.asApp(scopes.join(' '), pathOf(served), inputOf(served))
    if (body.error !== 'ScopeMissingError') return scopes.join(' ')
    const [, missing] = /^Missing required scope "([^"]+)"$/.exec(body.message)!
    expect({ status, scopes }).not.toMatchObject({ scopes: expect.arrayContaining([missing!]) })
    scopes.push(missing!)
  }
}

describe.each(placeholders.map((served) => [served.nsid, served] as const))('%s', (_, placeholder) => {
  test('lets in whom it is for, and tells the others why not', async () => {
    const served = actual(placeholder)
    for (const kind of KINDS) {
      const answer = await call(served, stage.headers(kind, served.nsid))
      const isOpen = served.callers === ANYBODY || served.callers.includes(kind) || (served.optional && kind === '-')
      const { status, body } = answer
      if (isOpen) expect({ kind, status, error: body.error, passes: passes(answer) }).toMatchObject({ passes: true })
      else expect({ kind, status, ...body }).toMatchObject({ kind, ...refusalFor(served, kind) })
    }
  })

  test('is for apps as far as they were allowed', async () => {
    const served = actual(placeholder)
    const { grant } = served
    if (grant === undefined) return
    const bare = await stage.asApp('', pathOf(served), inputOf(served))
    if (grant === 'any')
      return expect({ status: bare.status, error: bare.body.error, passes: passes(bare) }).toMatchObject({
        passes: true,
      })
    if (grant === 'refused')
      return expect(bare).toMatchObject({
        status: 403,
        body: {
          error: 'Forbidden',
          message: expect.stringMatching(
            /^OAuth credentials are not supported for this endpoint$|^Use the account manager interface/,
          ),
        },
      })
    expect(bare).toMatchObject({ status: 403, body: { error: 'ScopeMissingError' } })
    for (const scope of new Set([grant.scope, await scopesAskedFor(served)])) {
      const granted = await stage.asApp(scope, pathOf(served), inputOf(served))
      expect({ scope, status: granted.status, error: granted.body.error, passes: passes(granted) }).toMatchObject({
        passes: true,
      })
    }
  })
})

/** What no app password may be limited to, because only the account itself may do it. */
const OWNERS_ALONE = /^identity:|action=manage$/

describe.each(placeholders.filter(({ grant }) => grant).map((served) => [served.nsid, served] as const))(
  '%s',
  (_, placeholder) => {
    test('is for app passwords with scopes as far as those go', async () => {
      const served = actual(placeholder)
      const grant = served.grant!
      const callWith = (scope: string) => stage.asAppPassword(scope, pathOf(served), inputOf(served))
      const bare = await callWith('')
      if (!served.callers.includes('A')) return expect(bare).toMatchObject({ status: 400, body: WRONG_SCOPE_BODY })
      if (grant === 'any') return expect({ status: bare.status, passes: passes(bare) }).toMatchObject({ passes: true })
      const error = grant === 'refused' ? 'Forbidden' : 'ScopeMissingError'
      expect(bare).toMatchObject({ status: 403, body: { error } })
      if (grant === 'refused' || OWNERS_ALONE.test(grant.scope)) return
      expect(passes(await callWith(grant.scope))).toBe(true)
    })
  },
)

test('the table names every method that is served', () => {
  const served = features
    .flatMap(({ routes = [] }) => routes)
    .flatMap((endpoint) => ('nsid' in endpoint ? [endpoint.nsid] : []))
  const named = [...placeholders.map(({ nsid }) => nsid), ...EXTENSIONS, ...DRAFTS, ...SUBSCRIPTIONS]
  expect(served.toSorted()).toEqual(named.toSorted())
})

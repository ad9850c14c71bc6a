/** How the network sees one account: its identity, its repository at a relay, and its profile at the AppView. */
import { inOneLine } from '../../../base/server-request.ts'
import { timeInWords } from '../../../base/time-words.ts'
import { membersOf } from '../../../base/members.ts'
import type { Context } from '../../../platform/context.ts'
import { askJson } from '../../../platform/network/json-answer.ts'
import { claimedHandle, pdsEndpoint, publishedSigningKey, type DidDocument } from '../../../protocol/did-document.ts'
import { INVALID_HANDLE, type Did } from '../../../protocol/identifiers.ts'
import { formatDidKey } from '../../../protocol/keys.ts'
import { crawlersFor } from '../../data/firehose/firehose.ts'
import { repoHead } from '../../data/repo/repo.ts'
import { changedWords, undoWords } from '../../identity/account-events/account-events.ts'
import { signingKeyOf } from '../../identity/account-keys/account-keys.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import { watchedIdentity } from '../../identity/identity-watch/identity-watch.ts'
import { isServedHandle, publishedDids, resolveDid } from '../../identity/identity/identity.ts'
import { broken, good, type Link } from './link.ts'

const MAX_SAID_CHARS = 200
const OPERATION = 'its holder can correct the identity, with a key that may change it'
const OWN_OPERATION = 'correct your identity, with your wallet or in the app through which you moved'
const AGAIN = 'set your handle again on your account page'
const POST = 'post something, and look again after some minutes'

/** A remedy that operators and holders can apply alike. */
const sameFor = (remedy: string) => [remedy, remedy] as const

/** Text from another service, shortened to one line for display. */
const told = (said: unknown): string => inOneLine(String(said), MAX_SAID_CHARS)

/** Returns the links from an account to the network. Asks the directory, DNS, a relay and the AppView. */
export async function accountReach(ctx: Context, account: Account): Promise<Link[]> {
  const { did } = account
  const resolution = await resolveDid(ctx, did, { live: true })
  const identity = resolution.ok
    ? await identityLinks(ctx, account, resolution.document)
    : [broken('identity', 'fault', `${did} does not resolve: ${resolution.fault}`, 'wait if the directory is down')]
  return [
    statusLink(account),
    ...identity,
    ...(await changeLinks(ctx, did)),
    ...(await relayLinks(ctx, did)),
    await appviewLink(ctx, account),
  ]
}

/** A change of the identity that someone else has made, for as long as it can be undone. */
async function changeLinks({ db, clock }: Context, did: Did): Promise<Link[]> {
  const change = (await watchedIdentity(db, did))?.change ?? null
  if (change === null || change.undoableUntil <= clock.now()) return []
  return [
    broken(
      'changes of the identity',
      'warning',
      `an operation that this server did not send changed it on ${timeInWords(change.at)}: ${changedWords(change)}`,
      ...sameFor(`nothing, if the holder made it; otherwise: ${undoWords(change)}`),
    ),
  ]
}

function statusLink({ deactivatedAt, takedownRef }: Account): Link {
  const name = 'account'
  if (takedownRef !== null)
    return broken(name, 'fault', 'it is taken down here', 'restore it with "holdfast account restore"')
  if (deactivatedAt !== null)
    return broken(
      name,
      'fault',
      'it is deactivated',
      'its holder can activate it',
      'reactivate it on your account page',
    )
  return good(name, 'it is active')
}

async function identityLinks(ctx: Context, account: Account, document: DidDocument): Promise<Link[]> {
  return [
    identityLink(ctx, document),
    await keyLink(ctx, account.did, document),
    await handleLink(ctx, account, document),
  ]
}

function identityLink({ config: { publicUrl } }: Context, document: DidDocument): Link {
  const endpoint = pdsEndpoint(document)
  return endpoint === publicUrl
    ? good('identity', `it names ${publicUrl} as its server`)
    : broken(
        'identity',
        'fault',
        `it names ${endpoint ?? 'no server'} instead of ${publicUrl}`,
        OPERATION,
        OWN_OPERATION,
      )
}

async function keyLink(ctx: Context, did: Did, document: DidDocument): Promise<Link> {
  const key = await signingKeyOf(ctx, ctx.db, did)
  return key !== null && publishedSigningKey(document) === formatDidKey(key.publicKey)
    ? good('signing key', 'the identity names the key that signs here')
    : broken(
        'signing key',
        'fault',
        'the identity names another key than the one that signs here',
        OPERATION,
        OWN_OPERATION,
      )
}

async function handleLink(ctx: Context, { did, handle }: Account, document: DidDocument): Promise<Link> {
  const name = 'handle'
  const claimed = claimedHandle(document)
  if (handle === null)
    return broken(
      name,
      'warning',
      'the account has no handle',
      'its holder can choose one',
      'choose one on your account page',
    )
  if (claimed !== handle)
    return broken(name, 'fault', `the identity claims ${claimed ?? 'no handle'} instead of ${handle}`, OPERATION, AGAIN)
  const { dns, web } = await publishedDids(ctx, handle)
  const found = dns ?? web
  if (found === did) return good(name, `the handle ${handle} leads to the account by ${dns === null ? 'https' : 'DNS'}`)
  if (found === null && isServedHandle(ctx, handle))
    return broken(
      name,
      'warning',
      `the handle ${handle} could not be looked up from here`,
      'run "holdfast doctor": a wildcard record and certificate make handles of this server known',
    )
  return broken(
    name,
    'fault',
    found === null ? `the handle ${handle} leads nowhere` : `the handle ${handle} leads to ${found}`,
    ...sameFor(`publish ${did} at https://${handle}/.well-known/atproto-did, or in a TXT record of _atproto.${handle}`),
  )
}

async function relayLinks(ctx: Context, did: Did): Promise<Link[]> {
  const [relay] = crawlersFor(ctx.config)
  if (relay === undefined) return []
  const name = `repository at ${new URL(relay).host}`
  const answer = await askJson(ctx.upstream, `${relay}/xrpc/com.atproto.sync.getRepoStatus?did=${did}`)
  if (!answer.ok) return [broken(name, 'unknown', `the relay cannot be reached: ${answer.detail}`, 'try again later')]
  const { error, active, status, rev } = membersOf(answer.json)
  const here = (await repoHead(ctx.db, did))?.rev ?? null
  if (error === 'RepoNotFound')
    return [broken(name, 'fault', 'the relay does not know it', 'see whether the relay follows this server', POST)]
  if (typeof active !== 'boolean')
    return [broken(name, 'unknown', `the relay returns ${answer.status}`, 'try again later')]
  if (!active)
    return [broken(name, 'fault', `the relay reports it as ${told(status ?? 'inactive')}`, 'ask its operator why')]
  if (typeof rev === 'string' && here !== null && rev < here)
    return [
      broken(
        name,
        'warning',
        `the relay has revision ${told(rev)}, and ${here} is here`,
        'see whether the relay follows this server',
        POST,
      ),
    ]
  return [good(name, typeof rev === 'string' ? `the relay has revision ${told(rev)}, the newest` : 'the relay has it')]
}

async function appviewLink({ config, upstream }: Context, { did, handle }: Account): Promise<Link> {
  const { url } = config.appview
  const name = `profile at ${new URL(url).host}`
  const answer = await askJson(upstream, `${url}/xrpc/app.bsky.actor.getProfile?actor=${did}`)
  if (!answer.ok) return broken(name, 'unknown', `the AppView cannot be reached: ${answer.detail}`, 'try again later')
  const { error, message, handle: seen, did: named } = membersOf(answer.json)
  if (named !== did) {
    const said = told([error, message].filter((each) => typeof each === 'string').join(': '))
    return answer.status === 400 || answer.status === 404
      ? broken(
          name,
          'fault',
          `the AppView does not show it (${said})`,
          'mend the links above first, then post something',
          POST,
        )
      : broken(name, 'unknown', `the AppView returns ${answer.status}`, 'try again later')
  }
  if (seen === INVALID_HANDLE)
    return broken(
      name,
      'fault',
      'the AppView could not verify the handle',
      'mend the handle; then set it again, which tells the network',
      AGAIN,
    )
  return seen === (handle ?? INVALID_HANDLE)
    ? good(name, `the AppView shows it as ${seen}`)
    : broken(name, 'warning', `the AppView shows it as ${told(seen)}`, 'wait an hour; then set the handle again', AGAIN)
}

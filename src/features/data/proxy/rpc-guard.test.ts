import { expect, test } from 'bun:test'
import type { Did } from '../../../protocol/identifiers.ts'
import type { AccessCaller } from '../../access/callers/callers.ts'
import { permissionsOf } from '../../../protocol/scopes.ts'
import { isOpenRead, requireRpc } from './rpc-guard.ts'

const service = { did: 'did:web:api.example' as Did, fragment: 'bsky_appview' }
const caller = (scope: string): AccessCaller => ({
  did: 'did:plc:a' as Did,
  credential: 'oauth',
  permissions: permissionsOf(scope),
  personalDetails: false,
  sessionId: 's',
  tokenId: 't',
})

const cases: [string, string, boolean][] = [
  ['atproto rpc:app.bsky.feed.getTimeline?aud=did:web:api.example%23bsky_appview', 'app.bsky.feed.getTimeline', true],
  ['atproto rpc:app.bsky.feed.getTimeline?aud=*', 'app.bsky.feed.getTimeline', true],
  ['atproto rpc:*?aud=did:web:api.example%23bsky_appview', 'app.bsky.feed.getTimeline', true],
  ['atproto transition:generic', 'app.bsky.feed.getTimeline', true],
  ['atproto transition:generic transition:chat.bsky', 'chat.bsky.convo.getLog', true],
  ['atproto transition:generic', 'chat.bsky.convo.getLog', false],
  [
    'atproto rpc:app.bsky.feed.getTimeline?aud=did:web:other.example%23bsky_appview',
    'app.bsky.feed.getTimeline',
    false,
  ],
  ['atproto rpc:app.bsky.feed.getFeed?aud=*', 'app.bsky.feed.getTimeline', false],
  ['atproto repo:* blob:*/*', 'app.bsky.feed.getTimeline', false],
]
test.each(cases)('%s lets %s pass: %p', (scope, lxm, passes) => {
  const check = () => requireRpc(caller(scope), lxm, service)
  if (passes) expect(check).not.toThrow()
  else expect(check).toThrow(`Missing required scope "rpc:${lxm}?aud=did:web:api.example%23bsky_appview"`)
})

test.each([
  ['GET', 'app.bsky.feed.getAuthorFeed', true],
  ['HEAD', 'app.bsky.actor.getProfile', true],
  ['POST', 'app.bsky.graph.muteActor', false],
  ['GET', 'app.bsky.notification.listNotifications', true],
  ['GET', 'app.bsky.graph.getMutes', true],
  ['GET', 'app.bsky.actor.getPreferences', false],
  ['GET', 'app.bsky.actor.GETPREFERENCES', false],
  ['GET', 'chat.bsky.convo.getLog', false],
  ['GET', 'com.atproto.label.queryLabels', false],
])('%s %s is open to an agent without a scope for it: %p', (method, nsid, open) => {
  expect(isOpenRead(method, nsid)).toBe(open)
})

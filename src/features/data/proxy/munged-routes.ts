/** AppView queries whose responses include what the caller has just written. */
import { query } from '../../../http/endpoint.ts'
import { mungeActorLikes, mungeAuthorFeed, mungeProfile, mungeProfiles, mungeTimeline } from './feed-munging.ts'
import { readAfterWrite, readThread } from './read-after-write.ts'
import { rpc } from './rpc-guard.ts'

const auth = rpc()

export const mungedRoutes = [
  query('app.bsky.actor.getProfile', {
    auth,
    handler: (call) => readAfterWrite(call, 'app.bsky.actor.getProfile', mungeProfile),
  }),
  query('app.bsky.actor.getProfiles', {
    auth,
    handler: (call) => readAfterWrite(call, 'app.bsky.actor.getProfiles', mungeProfiles),
  }),
  query('app.bsky.feed.getActorLikes', {
    auth,
    handler: (call) => readAfterWrite(call, 'app.bsky.feed.getActorLikes', mungeActorLikes),
  }),
  query('app.bsky.feed.getAuthorFeed', {
    auth,
    handler: (call) => readAfterWrite(call, 'app.bsky.feed.getAuthorFeed', mungeAuthorFeed),
  }),
  query('app.bsky.feed.getTimeline', {
    auth,
    handler: (call) => readAfterWrite(call, 'app.bsky.feed.getTimeline', mungeTimeline),
  }),
  query('app.bsky.feed.getPostThread', { auth, handler: readThread }),
]

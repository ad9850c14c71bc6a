/**
 * Adds the caller's new profile and posts to responses of an AppView that lags behind. Each function returns a new
 * value, or null to leave the response as it is.
 */
import type { Did } from '../../../protocol/identifiers.ts'
import type { LexDefs, LexMethods } from '../../../protocol/lexicons/generated/types.ts'
import type { LocalChanges, LocalPost, Post } from './local-records.ts'
import { postView, withDetailedProfile, withProfile, type PostView, type Viewer } from './local-views.ts'

type FeedItem = LexDefs['app.bsky.feed.defs#feedViewPost']
export type Output<N extends keyof LexMethods> = LexMethods[N] extends { output: infer Value } ? Value : never
export type Params<N extends keyof LexMethods> = LexMethods[N]['params']

export type Munge<N extends keyof LexMethods> = (
  viewer: Viewer,
  output: Output<N>,
  changes: LocalChanges,
  params: Params<N>,
) => Output<N> | null | Promise<Output<N> | null>

/**
 * Most profiles and items that a response can have, by the lexicons. Longer lists are left as they are: each entry
 * would get a profile, which may be many times as long as the entry.
 */
const MAX_PROFILES = 25
/** One more than can be asked for, because the post that an author has pinned comes first in addition. */
const MAX_ITEMS = 100 + 1

export const mungeProfile: Munge<'app.bsky.actor.getProfile'> = (viewer, output, { profile }) =>
  profile && output.did === viewer.author.did ? withDetailedProfile(viewer, output, profile) : output

export const mungeProfiles: Munge<'app.bsky.actor.getProfiles'> = (viewer, { profiles, ...rest }, { profile }) =>
  profiles.length > MAX_PROFILES
    ? null
    : {
        ...rest,
        profiles: profiles.map((view) =>
          profile && view.did === viewer.author.did ? withDetailedProfile(viewer, view, profile) : view,
        ),
      }

export const mungeTimeline: Munge<'app.bsky.feed.getTimeline'> = async (
  viewer,
  { feed, ...rest },
  { posts },
  { cursor },
) =>
  feed.length > MAX_ITEMS
    ? null
    : {
        ...rest,
        feed: await withNewPosts(viewer, feed, posts, cursor === undefined),
      }

export const mungeAuthorFeed: Munge<'app.bsky.feed.getAuthorFeed'> = async (
  viewer,
  output,
  changes,
  { cursor, filter },
) => {
  if (output.feed.length > MAX_ITEMS) return null
  if (!isOwnFeed(viewer, output.feed)) return output
  const belongs = feedFilters[filter] ?? (() => true)
  const posts = changes.posts.filter(({ record }) => belongs(record, viewer.author.did))
  return {
    ...output,
    feed: await withNewPosts(viewer, withOwnProfile(viewer, output.feed, changes), posts, cursor === undefined),
  }
}

const isBy = ({ uri }: { uri: string }, did: Did) => uri.startsWith(`at://${did}/`)
const hasVideo = ({ embed }: Post) =>
  embed?.$type === 'app.bsky.embed.video' ||
  (embed?.$type === 'app.bsky.embed.recordWithMedia' && embed.media.$type === 'app.bsky.embed.video')
const hasImages = ({ embed }: Post) =>
  embed?.$type === 'app.bsky.embed.images' ||
  (embed?.$type === 'app.bsky.embed.recordWithMedia' && embed.media.$type === 'app.bsky.embed.images')

/** The posts that an author's feed shows under each filter. A filter without an entry shows all posts. */
const feedFilters: Record<string, (post: Post, did: Did) => boolean> = {
  posts_no_replies: ({ reply }) => !reply,
  posts_and_author_threads: ({ reply }, did) => !reply || (isBy(reply.root, did) && isBy(reply.parent, did)),
  posts_with_media: (post) => hasImages(post) || hasVideo(post),
  posts_with_video: hasVideo,
}

export const mungeActorLikes: Munge<'app.bsky.feed.getActorLikes'> = (viewer, { feed, ...rest }, changes) =>
  feed.length > MAX_ITEMS ? null : { ...rest, feed: withOwnProfile(viewer, feed, changes) }

/** Whether the feed is the author's own. Its first item is then a post or a repost by the author. */
function isOwnFeed({ author }: Viewer, [first]: readonly FeedItem[]): boolean {
  if (!first) return false
  if (first.reason?.$type === 'app.bsky.feed.defs#reasonRepost') return first.reason.by.did === author.did
  return first.post.author.did === author.did
}

function withOwnProfile(viewer: Viewer, feed: readonly FeedItem[], { profile }: LocalChanges): FeedItem[] {
  return feed.map((item) => {
    if (!profile || item.post.author.did !== viewer.author.did) return item
    return { ...item, post: { ...item.post, author: withProfile(viewer, item.post.author, profile) } }
  })
}

/**
 * Insert new posts in order of time. Posts older than the last item belong to a later page, and on later pages posts
 * newer than the first item belong to an earlier one.
 */
async function withNewPosts(
  viewer: Viewer,
  feed: readonly FeedItem[],
  posts: readonly LocalPost[],
  isFirstPage: boolean,
): Promise<FeedItem[]> {
  const present = new Set<string>(feed.map(({ post }) => post.uri))
  const from = timeOf(feed.at(-1)?.post) ?? 0
  const until = isFirstPage ? Infinity : (timeOf(feed[0]?.post) ?? 0)
  const munged = [...feed]
  for (const post of posts.toReversed()) {
    if (post.indexedAt <= from || post.indexedAt >= until || present.has(post.uri)) continue
    const older = munged.findIndex((item) => timeOf(item.post)! < post.indexedAt)
    munged.splice(older < 0 ? munged.length : older, 0, { post: await postView(viewer, post) })
  }
  return munged
}

const timeOf = (post: PostView | undefined): number | undefined => post && Date.parse(post.indexedAt)

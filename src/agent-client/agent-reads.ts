/** The responses to an agent's reads, reduced to their text. */
import type { Answer } from '../base/server-request.ts'
import { membersOf } from '../base/members.ts'
import type { Agent } from './agent.ts'

/** Depth of a thread that is shown, in each direction. */
const THREAD_DEPTH = 6

/** Most posts of a thread that are shown. Further ones are only counted. */
const MAX_THREAD_POSTS = 200

type Page = { limit?: number; cursor?: string }

export class Reads {
  readonly #agent: Agent

  constructor(agent: Agent) {
    this.#agent = agent
  }

  async timeline(page: Page): Promise<object> {
    const { feed, cursor } = await this.#get('app.bsky.feed.getTimeline', paged(page))
    return listed({ posts: itemsOf(feed).map(feedItem) }, cursor)
  }

  async thread(uri: string): Promise<object> {
    const { thread } = await this.#get('app.bsky.feed.getPostThread', {
      uri,
      depth: String(THREAD_DEPTH),
      parentHeight: String(THREAD_DEPTH),
    })
    return threadNode(membersOf(thread), THREAD_DEPTH, { left: MAX_THREAD_POSTS })
  }

  async profile(actor: string): Promise<object> {
    const profile = await this.#get('app.bsky.actor.getProfile', { actor: actor.replace(/^@/, '') })
    const { did, handle, displayName, description, followersCount, followsCount, postsCount, viewer } = profile
    const { following, followedBy } = membersOf(viewer)
    return {
      did,
      handle,
      displayName,
      description,
      followersCount,
      followsCount,
      postsCount,
      isFollowed: following !== undefined,
      followsYou: followedBy !== undefined,
    }
  }

  async notifications(page: Page): Promise<object> {
    const { notifications, cursor } = await this.#get('app.bsky.notification.listNotifications', paged(page))
    const items = itemsOf(notifications).map(
      ({ uri, cid, author, reason, reasonSubject, record, isRead, indexedAt }) => ({
        reason,
        author: nameOf(author),
        uri,
        cid,
        about: reasonSubject,
        text: membersOf(record)['text'],
        isRead,
        at: indexedAt,
      }),
    )
    return listed({ notifications: items }, cursor)
  }

  async search(q: string, page: Page): Promise<object> {
    const { posts, cursor } = await this.#get('app.bsky.feed.searchPosts', { q, ...paged(page) })
    return listed({ posts: itemsOf(posts).map(postWords) }, cursor)
  }

  #get = (nsid: string, query: Record<string, string>): Promise<Answer> =>
    this.#agent.call(nsid, { method: 'GET', query })
}

const paged = ({ limit, cursor }: Page): Record<string, string> => ({
  ...(limit !== undefined && { limit: String(limit) }),
  ...(cursor !== undefined && { cursor }),
})

const listed = (items: object, cursor: unknown): object => ({ ...items, ...(typeof cursor === 'string' && { cursor }) })

const itemsOf = (value: unknown): Answer[] => (Array.isArray(value) ? value.map(membersOf) : [])

function nameOf(author: unknown): object {
  const { did, handle, displayName } = membersOf(author)
  return { did, handle, displayName }
}

function feedItem({ post, reason }: Answer): object {
  const { by } = membersOf(reason)
  return { ...postWords(membersOf(post)), ...(by !== undefined && { repostedBy: nameOf(by) }) }
}

function postWords({ uri, cid, author, record, embed, replyCount, repostCount, likeCount, viewer }: Answer): object {
  const { text, createdAt, reply } = membersOf(record)
  const { images, external } = membersOf(embed)
  const { like, repost } = membersOf(viewer)
  return {
    uri,
    cid,
    author: nameOf(author),
    text,
    createdAt,
    replyTo: membersOf(membersOf(reply)['parent'])['uri'],
    images: images === undefined ? undefined : itemsOf(images).map(({ alt }) => ({ alt })),
    link: membersOf(external)['uri'],
    replyCount,
    repostCount,
    likeCount,
    isLiked: like !== undefined,
    isReposted: repost !== undefined,
  }
}

/**
 * A missing or blocked post has only its URI and a flag that says which it is. `budget` is that of the whole thread.
 */
function threadNode(
  { post, parent, replies, uri, notFound, blocked }: Answer,
  depth: number,
  budget: { left: number },
): object {
  budget.left--
  if (post === undefined) return { uri, ...(notFound === true && { notFound }), ...(blocked === true && { blocked }) }
  const above = parent !== undefined && depth > 0 && { parent: threadNode(membersOf(parent), depth - 1, budget) }
  if (replies === undefined || depth === 0) return { ...postWords(membersOf(post)), ...above }
  const shown: object[] = []
  const all = itemsOf(replies)
  for (const reply of all) if (budget.left > 0) shown.push(threadNode(reply, depth - 1, budget))
  const omitted = all.length - shown.length
  return { ...postWords(membersOf(post)), ...above, replies: shown, ...(omitted > 0 && { repliesNotShown: omitted }) }
}

/**
 * Adds the caller's new replies to threads, and builds threads around a new post that the AppView does not know yet.
 */
import type { LexDefs } from '../../../protocol/lexicons/generated/types.ts'
import type { AtUri } from '../../../protocol/identifiers.ts'
import type { Munge, Output, Params } from './feed-munging.ts'
import type { LocalChanges, LocalPost, Post } from './local-records.ts'
import { postView, type Viewer } from './local-views.ts'

type GetPostThread = 'app.bsky.feed.getPostThread'
type ThreadNode = Output<GetPostThread>['thread']
type ThreadPost = { $type: 'app.bsky.feed.defs#threadViewPost' } & LexDefs['app.bsky.feed.defs#threadViewPost']

const isThreadPost = (node: ThreadNode | undefined): node is ThreadPost =>
  node?.$type === 'app.bsky.feed.defs#threadViewPost'

const threadPost = async (viewer: Viewer, post: LocalPost): Promise<ThreadPost> => ({
  $type: 'app.bsky.feed.defs#threadViewPost',
  post: await postView(viewer, post),
})

export const mungeThread: Munge<GetPostThread> = async (viewer, output, { posts }) =>
  isThreadPost(output.thread) ? { ...output, thread: await withReplies(viewer, output.thread, posts) } : output

/**
 * Returns the thread with each new reply under its parent, at any depth, the newest first. A reply that is present
 * already is not repeated. If the parent occurs several times, which never happens in a thread of an AppView, the reply
 * goes under the first one only: otherwise, the response could become many times as long.
 */
async function withReplies(viewer: Viewer, thread: ThreadPost, posts: readonly LocalPost[]): Promise<ThreadPost> {
  const root = replyOf(thread.post.record)?.root.uri ?? thread.post.uri
  const replies = posts.filter(({ record }) => record.reply?.root.uri === root)
  if (replies.length === 0) return thread
  const present = new Set<string>()
  collectUris(thread, present)
  const unplaced = new Map<string, ThreadPost[]>()
  for (const reply of replies) {
    const parent = reply.record.reply!.parent.uri
    if (!present.has(parent) || present.has(reply.uri)) continue
    present.add(reply.uri)
    unplaced.set(parent, [await threadPost(viewer, reply), ...(unplaced.get(parent) ?? [])])
  }
  return placed(thread, unplaced)
}

const replyOf = (record: object) => (record as Partial<Post>).reply

function collectUris({ post, replies = [] }: ThreadPost, found: Set<string>): void {
  found.add(post.uri)
  for (const reply of replies) if (isThreadPost(reply)) collectUris(reply, found)
}

/** Moves replies from `unplaced`, a map by the URI of their parent, to their places under this node. */
function placed(node: ThreadPost, unplaced: Map<string, ThreadPost[]>): ThreadPost {
  if (unplaced.size === 0) return node
  const own = unplaced.get(node.post.uri) ?? []
  unplaced.delete(node.post.uri)
  const replies = [...own, ...(node.replies ?? [])]
  return replies.length === 0
    ? node
    : { ...node, replies: replies.map((reply) => (isThreadPost(reply) ? placed(reply, unplaced) : reply)) }
}

/**
 * Returns the thread around a new post, or null if `uri` is not one of them. Its ancestors come from the AppView, if it
 * has them.
 */
export async function threadAround(
  viewer: Viewer,
  uri: AtUri,
  { posts }: LocalChanges,
  { parentHeight }: Params<GetPostThread>,
): Promise<Output<GetPostThread> | null> {
  const focus = posts.find((post) => post.uri === uri)
  if (!focus) return null
  const thread = await withReplies(viewer, await threadPost(viewer, focus), posts)
  const parentUri = focus.record.reply?.parent.uri
  if (parentUri === undefined || parentHeight === 0) return { thread }
  const parent = await findParent(viewer, parentUri, parentHeight)
  return { thread: parent ? { ...thread, parent } : thread }
}

/** Returns undefined if the AppView refuses or does not respond, so that the thread is shown without its parents. */
async function findParent(viewer: Viewer, uri: string, parentHeight: number): Promise<ThreadPost['parent']> {
  try {
    const { thread } = (await viewer.ask('app.bsky.feed.getPostThread', {
      uri,
      parentHeight: String(parentHeight),
      depth: '0',
    })) as Output<GetPostThread>
    return thread
  } catch {
    return undefined // refused or unreachable
  }
}

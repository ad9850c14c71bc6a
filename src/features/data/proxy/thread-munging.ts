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

async function withReplies(viewer: Viewer, thread: ThreadPost, posts: readonly LocalPost[]): Promise<ThreadPost> {
  const root = replyOf(thread.post.record)?.root.uri ?? thread.post.uri
  let munged = thread
  for (const post of posts) {
    if (post.record.reply?.root.uri === root) munged = await withReply(viewer, munged, post)
  }
  return munged
}

const replyOf = (record: object) => (record as Partial<Post>).reply

/** Insert a reply under its parent, at any depth of the tree. A reply that is present already is not repeated. */
async function withReply(viewer: Viewer, node: ThreadPost, post: LocalPost): Promise<ThreadPost> {
  const replies = node.replies ?? []
  if (post.record.reply?.parent.uri === node.post.uri) {
    if (replies.some((reply) => isThreadPost(reply) && reply.post.uri === post.uri)) return node
    return { ...node, replies: [await threadPost(viewer, post), ...replies] }
  }
  if (replies.length === 0) return node
  return {
    ...node,
    replies: await Promise.all(replies.map((reply) => (isThreadPost(reply) ? withReply(viewer, reply, post) : reply))),
  }
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

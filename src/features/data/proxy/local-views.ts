/** Builds the views that the AppView would return for an account's own records, before it has indexed them. */
import { recordUriParts, wireTime } from '../../../protocol/identifiers.ts'
import type { LexBlob, LexDefs } from '../../../protocol/lexicons/generated/types.ts'
import type { LocalAuthor, LocalPost, Post, Profile } from './local-records.ts'

export type ProfileViewBasic = LexDefs['app.bsky.actor.defs#profileViewBasic']
export type PostView = LexDefs['app.bsky.feed.defs#postView']
type Tagged<Name extends keyof LexDefs> = { $type: Name } & LexDefs[Name]
type Embed = NonNullable<Post['embed']>
type EmbedView = NonNullable<PostView['embed']>
type QuotedView = LexDefs['app.bsky.embed.record#view']['record']

/** The account whose records are shown, and access to the AppView for records of others. */
export interface Viewer {
  author: LocalAuthor
  /** Without a trailing slash. */
  cdnUrl: string
  /** Calls a method on behalf of the author. Throws the `Refusal` if the call fails. */
  ask(nsid: string, params: Record<string, string>): Promise<unknown>
}

type ImagePreset = 'avatar' | 'banner' | 'feed_thumbnail' | 'feed_fullsize'

/** Legacy blobs have no `$type`, and their CID is a string. */
type AnyBlob = LexBlob | { cid: string; mimeType: string }

function imageUrl({ cdnUrl, author }: Viewer, preset: ImagePreset, blob: AnyBlob): string {
  return `${cdnUrl}/img/${preset}/plain/${author.did}/${'cid' in blob ? blob.cid : blob.ref.$link}@jpeg`
}

const optionalImage = (viewer: Viewer, preset: ImagePreset, blob: AnyBlob | undefined) =>
  blob ? imageUrl(viewer, preset, blob) : undefined

/** Returns the view with the display name and avatar of the current profile. */
export const withProfile = <View extends { displayName?: string; avatar?: string }>(
  viewer: Viewer,
  view: View,
  { displayName, avatar }: Profile,
): View => ({
  ...view,
  displayName,
  avatar: optionalImage(viewer, 'avatar', avatar),
})

type ProfileViewDetailed = LexDefs['app.bsky.actor.defs#profileViewDetailed']

export const withDetailedProfile = (
  viewer: Viewer,
  view: ProfileViewDetailed,
  profile: Profile,
): ProfileViewDetailed => ({
  ...withProfile(viewer, view, profile),
  description: profile.description,
  banner: optionalImage(viewer, 'banner', profile.banner),
})

function authorView(viewer: Viewer): ProfileViewBasic {
  const { did, handle, profile } = viewer.author
  const view: ProfileViewBasic = { did, handle }
  return profile ? withProfile(viewer, view, profile) : view
}

export async function postView(viewer: Viewer, { uri, cid, indexedAt, record }: LocalPost): Promise<PostView> {
  return {
    uri,
    cid,
    author: authorView(viewer),
    record,
    embed: record.embed && (await embedView(viewer, record.embed)),
    replyCount: 0,
    repostCount: 0,
    likeCount: 0,
    quoteCount: 0,
    indexedAt: wireTime(indexedAt),
  }
}

/** Returns undefined for an embed that cannot be shown before it has been processed, such as a video. */
async function embedView(viewer: Viewer, embed: Embed): Promise<EmbedView | undefined> {
  switch (embed.$type) {
    case 'app.bsky.embed.images':
    case 'app.bsky.embed.external':
      return mediaView(viewer, embed)
    case 'app.bsky.embed.record':
      return { $type: 'app.bsky.embed.record#view', ...(await quoteView(viewer, embed.record.uri)) }
    case 'app.bsky.embed.recordWithMedia': {
      const media = mediaView(viewer, embed.media)
      return (
        media && {
          $type: 'app.bsky.embed.recordWithMedia#view',
          media,
          record: await quoteView(viewer, embed.record.record.uri),
        }
      )
    }
    default:
      return undefined
  }
}

function mediaView(
  viewer: Viewer,
  media: Embed,
): Tagged<'app.bsky.embed.images#view'> | Tagged<'app.bsky.embed.external#view'> | undefined {
  if (media.$type === 'app.bsky.embed.images') {
    const images = media.images.map(({ image, alt, aspectRatio }) => ({
      thumb: imageUrl(viewer, 'feed_thumbnail', image),
      fullsize: imageUrl(viewer, 'feed_fullsize', image),
      alt,
      aspectRatio,
    }))
    return { $type: 'app.bsky.embed.images#view', images }
  }
  if (media.$type !== 'app.bsky.embed.external') return undefined
  const { uri, title, description, thumb } = media.external
  return {
    $type: 'app.bsky.embed.external#view',
    external: { uri, title, description, thumb: optionalImage(viewer, 'feed_thumbnail', thumb) },
  }
}

async function quoteView(viewer: Viewer, uri: string): Promise<LexDefs['app.bsky.embed.record#view']> {
  const find = quotables[recordUriParts(uri).collection]
  const record = find && (await find(viewer, uri))
  return { record: record ?? ({ $type: 'app.bsky.embed.record#viewNotFound', uri, notFound: true } as QuotedView) }
}

/** How to find the view of a quoted record, by collection. */
const quotables: Record<string, (viewer: Viewer, uri: string) => Promise<QuotedView | null>> = {
  async 'app.bsky.feed.post'(viewer, uris) {
    const { posts } = (await viewer.ask('app.bsky.feed.getPosts', { uris })) as { posts: PostView[] }
    const post = posts[0]
    if (!post) return null
    const { uri, cid, author, record: value, labels, embed, indexedAt } = post
    return {
      $type: 'app.bsky.embed.record#viewRecord',
      uri,
      cid,
      author,
      value,
      labels,
      embeds: embed && [embed],
      indexedAt,
    }
  },
  async 'app.bsky.feed.generator'(viewer, feed) {
    const { view } = (await viewer.ask('app.bsky.feed.getFeedGenerator', { feed })) as {
      view: LexDefs['app.bsky.feed.defs#generatorView']
    }
    return { $type: 'app.bsky.feed.defs#generatorView', ...view }
  },
  async 'app.bsky.graph.list'(viewer, list) {
    const { list: view } = (await viewer.ask('app.bsky.graph.getList', { list, limit: '1' })) as {
      list: LexDefs['app.bsky.graph.defs#listView']
    }
    return { $type: 'app.bsky.graph.defs#listView', ...view }
  },
}

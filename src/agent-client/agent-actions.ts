/**
 * An agent's actions for an account in the social app: the records that it writes, with the references that other
 * services expect.
 */
import { KeyedQueue } from '../base/keyed-queue.ts'
import { OperatorError } from '../base/operator-error.ts'
import { NoAnswer, ServerRefusal, textOf, type Answer } from '../base/server-request.ts'
import { parseDid, parseHandle, type Did } from '../protocol/identifiers.ts'
import type { Agent } from './agent.ts'
import { checkImageSize, type ImageFolder } from './image-folder.ts'
import { checkPostText, partsOf, type Feature } from './rich-text.ts'

export const MAX_IMAGES = 4
/** How many of the account's latest records are searched for an existing like or follow. */
const SEARCHED_RECORDS = 100

export interface StrongReference {
  uri: string
  cid: string
}

export interface PostImage {
  image: object
  alt: string
}

interface Draft {
  text: string
  images?: readonly PostImage[]
  langs?: readonly string[]
  /** The URI of the post that it replies to. */
  replyTo?: string
}

/** A like or a follow. */
export interface Recorded {
  uri: string
  /** Whether the record existed before. */
  existed: boolean
}

export class Actions {
  readonly #agent: Agent
  /**
   * Serialises likes and follows: each is searched for before it is created, and two concurrent calls must not both
   * find none.
   */
  readonly #once = new KeyedQueue()

  readonly #images: ImageFolder | null

  /** Without a folder of images, no file is read. */
  constructor(
    agent: Agent,
    readonly now: () => number,
    images: ImageFolder | null,
  ) {
    this.#agent = agent
    this.#images = images
  }

  async post({ text, images = [], langs, replyTo }: Draft): Promise<StrongReference> {
    checkPostText(text)
    if (text.trim() === '' && images.length === 0) throw new OperatorError('a post needs a text or an image')
    const facets = await this.#facetsOf(text)
    return this.#create('app.bsky.feed.post', {
      text,
      ...(facets.length > 0 && { facets }),
      ...(langs !== undefined && langs.length > 0 && { langs }),
      ...(images.length > 0 && { embed: { $type: 'app.bsky.embed.images', images } }),
      ...(replyTo !== undefined && { reply: await this.#replyTo(replyTo) }),
    })
  }

  async like(named: string): Promise<Recorded> {
    const { uri, cid, viewer } = await this.#threadPost(named)
    return this.#once.run(uri, async () => {
      if (typeof viewer?.like === 'string') return { uri: viewer.like, existed: true }
      const isSame = ({ subject }: Answer) => (subject as { uri?: unknown } | undefined)?.uri === uri
      const found = await this.#existing('app.bsky.feed.like', isSame)
      if (found !== null) return found
      return { uri: (await this.#create('app.bsky.feed.like', { subject: { uri, cid } })).uri, existed: false }
    })
  }

  async follow(actor: string): Promise<Recorded & { did: Did }> {
    const did = parseDid(actor) ?? (await this.#resolved(actor))
    if (did === null) throw new OperatorError(`there is no account ${actor}`)
    if (did === (await this.#agent.did())) throw new OperatorError('an account cannot follow itself')
    return this.#once.run(did, async () => {
      const { viewer } = (await this.#agent.call('app.bsky.actor.getProfile', {
        method: 'GET',
        query: { actor: did },
      })) as Viewed
      if (typeof viewer?.following === 'string') return { uri: viewer.following, existed: true, did }
      const found = await this.#existing('app.bsky.graph.follow', ({ subject }) => subject === did)
      if (found !== null) return { ...found, did }
      return { uri: (await this.#create('app.bsky.graph.follow', { subject: did })).uri, existed: false, did }
    })
  }

  /** Upload an image from a file, or from base64. Returns the image for `post`. */
  async uploadImage({ path, data, alt }: { path?: string; data?: string; alt: string }): Promise<PostImage> {
    if ((path === undefined) === (data === undefined))
      throw new OperatorError('either "path" or "data" is needed, not both')
    const body = path === undefined ? decoded(data!) : await this.#imageFile(path)
    checkImageSize(body.length)
    const type = imageTypeOf(body)
    if (type === null) throw new OperatorError(`${path ?? 'the data'} is not an image in PNG, JPEG, GIF or WebP format`)
    const { blob } = await this.#agent.call('com.atproto.repo.uploadBlob', { method: 'POST', content: { body, type } })
    if (typeof blob !== 'object' || blob === null) throw new NoAnswer('the server did not return what it stored')
    return { image: blob, alt }
  }

  #imageFile(path: string): Promise<Uint8Array<ArrayBuffer>> {
    if (this.#images === null)
      throw new OperatorError(
        'no files are read here: start "holdfast agent mcp" with --images and the folder that holds them, or pass "data"',
      )
    return this.#images.read(path)
  }

  async #facetsOf(text: string): Promise<object[]> {
    const facets: object[] = []
    for (const { byteStart, byteEnd, feature } of partsOf(text)) {
      const written = await this.#featureOf(feature)
      if (written !== null) facets.push({ index: { byteStart, byteEnd }, features: [written] })
    }
    return facets
  }

  async #featureOf(feature: Feature): Promise<object | null> {
    if (feature.kind === 'link') return { $type: 'app.bsky.richtext.facet#link', uri: feature.uri }
    if (feature.kind === 'tag') return { $type: 'app.bsky.richtext.facet#tag', tag: feature.tag }
    const did = await this.#resolved(feature.handle)
    return did && { $type: 'app.bsky.richtext.facet#mention', did }
  }

  /** Null if no account has the handle. */
  async #resolved(handle: string): Promise<Did | null> {
    const parsed = parseHandle(handle.replace(/^@/, '').toLowerCase())
    if (parsed === null) return null
    try {
      const answer = await this.#agent.server.xrpc('com.atproto.identity.resolveHandle', {
        method: 'GET',
        query: { handle: parsed },
      })
      return parseDid(textOf(answer, 'did'))
    } catch (error) {
      if (error instanceof ServerRefusal && (error.status === 400 || error.status === 404)) return null
      throw error
    }
  }

  /** The post to reply to, and the root of its thread. */
  async #replyTo(named: string): Promise<{ root: StrongReference; parent: StrongReference }> {
    const { uri, cid, record, viewer } = await this.#threadPost(named)
    if (viewer?.replyDisabled === true)
      throw new OperatorError(`the author of the thread has not allowed replies to ${uri}`)
    const parent = { uri, cid }
    const root = (record as { reply?: { root?: Partial<StrongReference> } } | undefined)?.reply?.root
    return {
      root: typeof root?.uri === 'string' && typeof root.cid === 'string' ? { uri: root.uri, cid: root.cid } : parent,
      parent,
    }
  }

  async #threadPost(uri: string): Promise<PostView> {
    const query = { uri, depth: '0', parentHeight: '0' }
    const { thread } = (await this.#agent.call('app.bsky.feed.getPostThread', { method: 'GET', query })) as {
      thread?: { post?: PostView }
    }
    const post = thread?.post
    if (typeof post?.cid !== 'string' || !isNamed(post.uri, uri))
      throw new OperatorError(`there is no post ${uri} that this account can see`)
    return post
  }

  /** Finds a record in the account's own repository, because another service may not know it yet. */
  async #existing(collection: string, isSame: (record: Answer) => boolean): Promise<Recorded | null> {
    const query = { repo: await this.#agent.did(), collection, limit: String(SEARCHED_RECORDS) }
    const { records } = (await this.#agent.server.xrpc('com.atproto.repo.listRecords', { method: 'GET', query })) as {
      records?: (StrongReference & { value: Answer })[]
    }
    const found = records?.find(({ value }) => isSame(value))
    return found ? { uri: found.uri, existed: true } : null
  }

  async #create(collection: string, record: object): Promise<StrongReference> {
    const json = {
      repo: await this.#agent.did(),
      collection,
      record: { $type: collection, ...record, createdAt: new Date(this.now()).toISOString() },
    }
    const answer = await this.#agent.call('com.atproto.repo.createRecord', { method: 'POST', json })
    return { uri: textOf(answer, 'uri'), cid: textOf(answer, 'cid') }
  }
}

/** Whether a post has the name that was asked for, which may contain a handle instead of the DID. */
function isNamed(uri: unknown, named: string): boolean {
  const [, , authority = '', ...path] = named.split('/')
  return (
    typeof uri === 'string' &&
    (authority.startsWith('did:') ? uri === named : uri.startsWith('at://did:') && uri.endsWith(`/${path.join('/')}`))
  )
}

interface Viewed {
  viewer?: { like?: unknown; following?: unknown; replyDisabled?: unknown }
}

interface PostView extends StrongReference, Viewed {
  record?: unknown
}

function decoded(base64: string): Uint8Array<ArrayBuffer> {
  const bytes = Uint8Array.from(Buffer.from(base64, 'base64'))
  if (bytes.length < Math.floor((base64.replace(/[\s=]/g, '').length * 3) / 4))
    throw new OperatorError('"data" is not base64')
  return bytes
}

/** File signatures in hex; a dot stands for any digit. */
const signatures: readonly [RegExp, string][] = [
  [/^89504e470d0a1a0a/, 'image/png'],
  [/^ffd8ff/, 'image/jpeg'],
  [/^47494638(37|39)61/, 'image/gif'],
  [/^52494646.{8}57454250/, 'image/webp'],
]

/** Decides by the first bytes and not by the name of the file, so that only images are ever published. */
function imageTypeOf(bytes: Uint8Array): string | null {
  const head = Buffer.from(bytes.subarray(0, 12)).toString('hex')
  return signatures.find(([signature]) => signature.test(head))?.[1] ?? null
}

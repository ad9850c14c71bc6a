/** The tools of an assistant: the input of each, and what it does. */
import { Type, type Static, type TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { OperatorError } from '../base/operator-error.ts'
import { NoAnswer } from '../base/server-request.ts'
import { parseAtUri } from '../protocol/identifiers.ts'
import { Actions, MAX_IMAGES } from './agent-actions.ts'
import { Reads } from './agent-reads.ts'
import { Authorization } from './authorization.ts'
import type { Agent, Time } from './agent.ts'
import type { ImageFolder } from './image-folder.ts'

/** Longest wait of one call; clients give a call a minute. */
const MAX_WAIT_SECS = 45
const DEFAULT_WAIT_SECS = 25
const MAX_PAGE = 100

export interface Tool {
  name: string
  title: string
  description: string
  schema: TSchema
  /** Whether the tool changes nothing. */
  reads: boolean
  /** Whether doing it twice is like doing it once. */
  repeatable: boolean
  run(input: unknown): Promise<object | string>
}

const closed = { additionalProperties: false } as const
const uri = Type.String({
  description: 'The at:// URI of the post, as the reading tools return it.',
  pattern: '^at://',
  maxLength: 8192,
})
const actor = Type.String({
  description: 'A handle such as alice.example.com, or a DID.',
  minLength: 1,
  maxLength: 2048,
})
const text = Type.String({
  description: 'At most 300 characters. Mentions (@handle), links (https://…) and hashtags become links by themselves.',
  maxLength: 3000,
})
const langs = Type.Optional(
  Type.Array(Type.String({ pattern: '^[A-Za-z]{2,3}(-[A-Za-z0-9]+)*$' }), {
    description: 'Languages of the text, such as "en".',
    maxItems: 3,
  }),
)
const alt = Type.String({ description: 'Alternative text: what the image shows.', minLength: 1, maxLength: 2000 })
const images = Type.Optional(
  Type.Array(
    Type.Object({ image: Type.Object({ $type: Type.Literal('blob') }, { additionalProperties: true }), alt }, closed),
    {
      description: 'The value that upload_image returned, for each image.',
      maxItems: MAX_IMAGES,
    },
  ),
)
const page = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_PAGE, description: 'How many.' })),
  cursor: Type.Optional(Type.String({ description: 'The cursor of the previous page.', maxLength: 2048 })),
}

/** The objects that the tools of one agent work with. */
interface Parts {
  actions: Actions
  reads: Reads
  authorization: Authorization
}

/** The declaration of a tool. It is shared by all agents, so `run` gets the parts of one agent with the input. */
interface Declared extends Pick<Tool, 'name' | 'title' | 'description' | 'schema'> {
  writes: boolean
  repeatable: boolean
  run(parts: Parts, input: unknown): Promise<object | string>
}

/** Declare a tool that needs the account holder's consent. Without it, the answer says how to get it. */
const tool = <Schema extends TSchema>(
  name: string,
  title: string,
  description: string,
  schema: Schema,
  run: (parts: Parts, input: Static<Schema>) => Promise<object | string>,
  { writes = false, repeatable = !writes }: { writes?: boolean; repeatable?: boolean } = {},
): Declared => ({
  name,
  title,
  description,
  schema,
  writes,
  repeatable,
  run: (parts, input) => run(parts, checked(schema, input)),
})

const write = { writes: true }
const once = { writes: true, repeatable: true }

const writingTools = [
  tool(
    'authorize',
    'Authorize',
    'Get the consent of the account holder. The first call returns a code and the address where to enter it: show both to the person. Then call it again: it waits for the confirmation. If the access was ended, it requests a new confirmation.',
    Type.Object(
      {
        wait_seconds: Type.Optional(
          Type.Integer({ minimum: 0, maximum: MAX_WAIT_SECS, description: 'How long to wait for the confirmation.' }),
        ),
      },
      closed,
    ),
    ({ authorization }, { wait_seconds = DEFAULT_WAIT_SECS }) => authorization.authorize(wait_seconds * 1000),
    once,
  ),
  tool(
    'post',
    'Post',
    'Publish a post.',
    Type.Object({ text, images, langs }, closed),
    ({ actions }, input) => actions.post(input),
    write,
  ),
  tool(
    'reply',
    'Reply',
    'Publish a reply to a post.',
    Type.Object({ uri, text, images, langs }, closed),
    ({ actions }, { uri, ...draft }) => actions.post({ ...draft, replyTo: postUri(uri) }),
    write,
  ),
  tool(
    'like',
    'Like',
    'Like a post.',
    Type.Object({ uri }, closed),
    ({ actions }, { uri }) => actions.like(postUri(uri)),
    once,
  ),
  tool(
    'follow',
    'Follow',
    'Follow an account.',
    Type.Object({ actor }, closed),
    ({ actions }, { actor }) => actions.follow(actor),
    once,
  ),
]

/** Declared per folder, because its description names the folder with the images. */
const imageTool = (folder: ImageFolder | null): Declared =>
  tool(
    'upload_image',
    'Upload an image',
    'Upload an image (PNG, JPEG, GIF or WebP, at most 2 MB), for "post" or "reply".',
    Type.Object(
      {
        path: Type.Optional(
          Type.String({
            description:
              folder === null ? 'Not possible: no folder was named.' : `A file in ${folder.path}, or below it.`,
          }),
        ),
        data: Type.Optional(Type.String({ description: 'The image in base64, instead of a file.' })),
        alt,
      },
      closed,
    ),
    ({ actions }, input) => actions.uploadImage(input),
    once,
  )

const readingTools = [
  tool('timeline', 'Timeline', 'Read the home timeline.', Type.Object(page, closed), ({ reads }, input) =>
    reads.timeline(input),
  ),
  tool(
    'thread',
    'Thread',
    'Read a post with those above it and the replies.',
    Type.Object({ uri }, closed),
    ({ reads }, { uri }) => reads.thread(postUri(uri)),
  ),
  tool(
    'profile',
    'Profile',
    'Read the profile of an account.',
    Type.Object({ actor }, closed),
    ({ reads }, { actor }) => reads.profile(actor),
  ),
  tool(
    'notifications',
    'Notifications',
    'Read the notifications of the account.',
    Type.Object(page, closed),
    ({ reads }, input) => reads.notifications(input),
  ),
  tool(
    'search',
    'Search',
    'Search for posts.',
    Type.Object({ query: Type.String({ minLength: 1, maxLength: 500 }), ...page }, closed),
    ({ reads }, { query, ...rest }) => reads.search(query, rest),
  ),
]

export function agentTools(agent: Agent, time: Time, folder: ImageFolder | null): Tool[] {
  const parts = {
    actions: new Actions(agent, () => time.now(), folder),
    reads: new Reads(agent),
    authorization: new Authorization(agent),
  }
  return [...writingTools, imageTool(folder), ...readingTools].map((declared) => toolOf(parts, declared))
}

function toolOf(parts: Parts, { writes, run, ...declared }: Declared): Tool {
  return {
    ...declared,
    reads: !writes,
    async run(input) {
      try {
        return await parts.authorization.explain(() => run(parts, input))
      } catch (error) {
        if (declared.repeatable || !(error instanceof NoAnswer)) throw error
        throw new OperatorError(`${error.message}. It may have been published anyway: check before you retry`, {
          cause: error,
        })
      }
    },
  }
}

/** Throws OperatorError with the first fault. */
function checked<Schema extends TSchema>(schema: Schema, input: unknown): Static<Schema> {
  const fault = Value.Errors(schema, input ?? {}).First()
  if (fault !== undefined)
    throw new OperatorError(`${fault.path === '' ? 'the input' : `"${fault.path.slice(1)}"`}: ${fault.message}`)
  return (input ?? {}) as Static<Schema>
}

function postUri(text: string): string {
  if (parseAtUri(text) === null) throw new OperatorError(`${text} is not the URI of a post`)
  return text
}

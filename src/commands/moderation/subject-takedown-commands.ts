/** Take down, or restore, a record or a blob. Nothing is deleted. */
import { recordUriOf } from '../../protocol/record-links.ts'
import { accountCommand, findAccount } from '../account/operator-accounts.ts'
import { adminCommand } from '../admin-command.ts'
import { type Command, Misuse } from '../command.ts'
import type { Server } from '../operator-server.ts'

const changes = { takedown: { applied: true, done: 'is taken down' }, restore: { applied: false, done: 'is restored' } }

type Change = keyof typeof changes
type Wording = Pick<Command, 'summary' | 'details'>

async function changeStatus(server: Server, subject: object, shown: string, change: Change) {
  const { applied, done } = changes[change]
  const value = await server.post('/xrpc/com.atproto.admin.updateSubjectStatus', { subject, takedown: { applied } })
  return { value, text: `${shown} ${done}.` }
}

const recordCommand = (change: Change, wording: Wording): Command =>
  adminCommand({
    ...wording,
    parameters: ['<at-uri>'],
    async run({ server, positionals: [uri = ''] }) {
      const [, name = '', collection = '', rkey = ''] =
        /^at:\/\/([^/]+)\/([^/]+)\/([^/]+)$/.exec(recordUriOf(uri)) ?? []
      if (name === '') throw new Misuse('name the record as at://ACCOUNT/COLLECTION/KEY, or by its link at bsky.app')
      const { did } = await findAccount(server, name)
      const { subject } = await server.get<{ subject: object }>('/xrpc/com.atproto.admin.getSubjectStatus', {
        uri: `at://${did}/${collection}/${rkey}`,
      })
      return changeStatus(server, subject, uri, change)
    },
  })

const blobCommand = (change: Change, wording: Wording): Command =>
  accountCommand({
    ...wording,
    parameters: ['<cid>'],
    run: ({ server, account: { did }, positionals: [cid = ''] }) =>
      changeStatus(server, { $type: 'com.atproto.admin.defs#repoBlobRef', did, cid }, cid, change),
  })

export const recordTakedownCommand = recordCommand('takedown', {
  summary: 'Take a record down, so that only its holder can read it.',
  details: 'Nothing is deleted. "record restore" lifts the takedown.',
})

export const recordRestoreCommand = recordCommand('restore', { summary: 'Lift the takedown of a record.', details: '' })

export const blobTakedownCommand = blobCommand('takedown', {
  summary: 'Take a blob down, so that only its holder can read it.',
  details: 'Nothing is deleted. "blob restore" lifts the takedown.',
})

export const blobRestoreCommand = blobCommand('restore', { summary: 'Lift the takedown of a blob.', details: '' })

/** Take down, or restore, a record or a blob: shared by the four commands. */
import { recordUriOf } from '../../protocol/record-links.ts'
import { type Command, Misuse } from '../command.ts'
import { adminCommand } from '../admin-command.ts'
import { findAccount } from '../account/operator-accounts.ts'
import type { Server } from '../operator-server.ts'

const changes = { takedown: { applied: true, done: 'is taken down' }, restore: { applied: false, done: 'is restored' } }

interface Wording {
  change: keyof typeof changes
  summary: string
  details: string
}

async function changeStatus(server: Server, subject: object, shown: string, change: keyof typeof changes) {
  const { applied, done } = changes[change]
  const value = await server.post('/xrpc/com.atproto.admin.updateSubjectStatus', { subject, takedown: { applied } })
  return { value, text: `${shown} ${done}.` }
}

export const recordCommand = ({ change, ...command }: Wording): Command =>
  adminCommand({
    ...command,
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

export const blobCommand = ({ change, ...command }: Wording): Command =>
  adminCommand({
    ...command,
    parameters: ['<account>', '<cid>'],
    async run({ server, positionals: [name = '', cid = ''] }) {
      const { did } = await findAccount(server, name)
      return changeStatus(server, { $type: 'com.atproto.admin.defs#repoBlobRef', did, cid }, cid, change)
    },
  })

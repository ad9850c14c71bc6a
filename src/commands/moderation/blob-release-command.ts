import { adminCommand } from '../admin-command.ts'
import { findAccount } from '../account/operator-accounts.ts'

export const blobReleaseCommand = adminCommand({
  summary: 'End the quarantine of a blob: everyone can read it again.',
  parameters: ['<account>', '<cid>'],
  details: '',
  async run({ server, positionals: [name = '', cid = ''] }) {
    const { did } = await findAccount(server, name)
    const value = await server.post('/v1/admin/blobs/release', { did, cid })
    return { value, text: `${cid} is released.` }
  },
})

import { accountCommand } from '../account/operator-accounts.ts'

export const blobReleaseCommand = accountCommand({
  summary: 'End the quarantine of a blob: everyone can read it again.',
  parameters: ['<cid>'],
  details: '',
  async run({ server, account: { did }, positionals: [cid = ''] }) {
    const value = await server.post('/v1/admin/blobs/release', { did, cid })
    return { value, text: `${cid} is released.` }
  },
})

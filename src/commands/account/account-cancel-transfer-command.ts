import { adminCommand } from '../admin-command.ts'

interface Cancelled {
  id: string
  revokedDeviceCredential: boolean
}

export const accountCancelTransferCommand = adminCommand({
  summary: 'Cancel the transfer of an account to another device.',
  parameters: ['<id>'],
  details: "Signs out the device that accepted the transfer, if any. The account's other sessions are not affected.",
  async run({ server, positionals: [id = ''] }) {
    const cancelled = await server.post<Cancelled>(`/v1/admin/transfers/${encodeURIComponent(id)}/cancel`)
    const device = cancelled.revokedDeviceCredential ? ' The device that had accepted it is signed out.' : ''
    return { value: cancelled, text: `The transfer is cancelled.${device}` }
  },
})

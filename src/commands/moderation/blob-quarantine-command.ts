import { DAY_SECS } from '../../base/durations.ts'
import { adminCommand } from '../admin-command.ts'
import { findAccount } from '../account/operator-accounts.ts'
import { integerOption, Misuse } from '../command.ts'

const DEFAULT_DAYS = 30

export const blobQuarantineCommand = adminCommand({
  summary: 'Set a blob aside, so that only moderators can read it, until a time.',
  parameters: ['<account>', '<cid>'],
  details:
    'Nothing is deleted. "blob release" ends it before its time, and "blob quarantined" lists what is set aside.',
  options: {
    days: { value: 'n', doc: `How long. Default: ${DEFAULT_DAYS}.` },
    'at-end': { value: 'WHAT', doc: 'What follows: release (the default), or takedown.' },
  },
  async run({ server, positionals: [name = '', cid = ''], options }) {
    const { did } = await findAccount(server, name)
    const atEnd = options['at-end'] ?? 'release'
    if (atEnd !== 'release' && atEnd !== 'takedown') throw new Misuse('--at-end takes "release" or "takedown"')
    const secs = (integerOption(options, 'days', 1) ?? DEFAULT_DAYS) * DAY_SECS
    const value = await server.post<{ endsAt: string }>('/v1/admin/blobs/quarantine', { did, cid, secs, atEnd })
    return { value, text: `${cid} is set aside until ${value.endsAt}.` }
  },
})

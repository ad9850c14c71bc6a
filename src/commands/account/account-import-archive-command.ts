import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { OperatorError } from '../../base/operator-error.ts'
import { accountCommand, nameOf } from './operator-accounts.ts'

interface Restored {
  blobs: { stored: number; present: number }
  hasRepo: boolean
  preferences: number
}

export const accountImportArchiveCommand = accountCommand({
  summary: 'Restore an account of this server from its archive.',
  parameters: ['<file>'],
  details: `The account must exist: a new or deactivated account to which the identity moves, or one whose data was lost.
"account export" makes the file, here or on another server.

Stores the blobs that the account does not have, replaces its repository with the one in the archive, signed again with
the key that the account has here, and replaces its preferences. Records that are not in the archive are lost. A broken
archive changes nothing that others see. If the command is interrupted, run it again.`,
  async run({ server, account, path, positionals: [name = ''] }) {
    const file = resolve(name)
    if (!existsSync(file)) throw new OperatorError(`${file} does not exist`)
    const restored = await server.upload<Restored>(`${path}/archive`, file, 'application/zip')
    const { blobs, hasRepo, preferences } = restored
    const parts = [
      hasRepo ? 'its repository' : 'no repository',
      `${blobs.stored} blobs (${blobs.present} were here already)`,
      `${preferences} preferences`,
    ]
    return { value: restored, text: `${nameOf(account)} is restored: ${parts.join(', ')}.` }
  },
})

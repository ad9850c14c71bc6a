import { resolve } from 'node:path'
import { adminCommand } from '../admin-command.ts'
import { bytes } from '../report.ts'
import { requireNoFile, saveArchive } from './archive-file.ts'
import { findAccount, nameOf, NAMED_BY } from './operator-accounts.ts'

export const accountExportCommand = adminCommand({
  summary: 'Download everything that the server stores of an account, as one archive.',
  parameters: ['<account>', '[file]'],
  details: `${NAMED_BY}
The default file is named after the account, in the current folder. An existing file is not replaced.

The archive (ZIP) has the repository, all blobs, the preferences, the names of the app passwords, and posts, follows,
likes and other records as tables. Its manifest lists the SHA-256 of each file. It contains no passwords and no
keys, but its contents are private: the audit log records who exported an account.`,
  async run({ server, positionals: [name = '', file] }) {
    const account = await findAccount(server, name)
    const path = resolve(file ?? `${account.handle ?? account.did.replaceAll(':', '-')}.zip`)
    requireNoFile(path)
    const size = await saveArchive(
      server.download(`/v1/admin/accounts/${encodeURIComponent(account.did)}/archive`),
      path,
    )
    return {
      value: { did: account.did, handle: account.handle, file: path, bytes: size },
      text: `${nameOf(account)} is exported to ${path} (${bytes(size)}).`,
    }
  },
})

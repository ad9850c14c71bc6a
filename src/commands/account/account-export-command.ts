import { resolve } from 'node:path'
import { bytes } from '../report.ts'
import { endsAsZip, requireNoFile, saveDownload } from '../downloads.ts'
import { accountCommand, nameOf } from './operator-accounts.ts'

export const accountExportCommand = accountCommand({
  summary: 'Download everything that the server stores of an account, as one archive.',
  parameters: ['[file]'],
  details: `The default file is named after the account, in the current folder. An existing file is not replaced.

The archive (ZIP) has the repository, all blobs, the preferences, the names of the app passwords, and posts, follows,
likes and other records as tables. Its manifest lists the SHA-256 of each file. It contains no passwords and no
keys, but its contents are private: the audit log records who exported an account.`,
  async run({ server, account, path, positionals: [given] }) {
    const file = resolve(given ?? `${account.handle ?? account.did.replaceAll(':', '-')}.zip`)
    requireNoFile(file)
    const size = await saveDownload(server.download(`${path}/archive`), file, endsAsZip())
    return {
      value: { did: account.did, handle: account.handle, file, bytes: size },
      text: `${nameOf(account)} is exported to ${file} (${bytes(size)}).`,
    }
  },
})

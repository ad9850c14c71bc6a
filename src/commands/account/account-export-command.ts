import { link, open, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { OperatorError } from '../../base/operator-error.ts'
import { adminCommand } from '../admin-command.ts'
import { bytes } from '../report.ts'
import { findAccount, nameOf, NAMED_BY } from './operator-accounts.ts'

/** The record that ends a ZIP archive has these bytes, and begins with this signature. */
const END_BYTES = 22
const END_SIGNATURE = Buffer.from([0x50, 0x4b, 0x05, 0x06])

export const accountExportCommand = adminCommand({
  summary: 'Download everything that the server stores of an account, as one archive.',
  parameters: ['<account>', '[file]'],
  details: `${NAMED_BY} The default file is named after the account, in the current folder. An existing file is not
replaced.

The archive (ZIP) has the repository, all blobs, the preferences, the names of the app passwords, and posts, follows,
likes and other records as tables. Its manifest lists the SHA-256 of each file. It has no password and no key, but
what it has is private: the audit log records who exported an account.`,
  async run({ server, positionals: [name = '', file] }) {
    const account = await findAccount(server, name)
    const path = resolve(file ?? `${account.handle ?? account.did.replaceAll(':', '-')}.zip`)
    const size = await save(server.download(`/v1/admin/accounts/${encodeURIComponent(account.did)}/archive`), path)
    return {
      value: { did: account.did, handle: account.handle, file: path, bytes: size },
      text: `${nameOf(account)} is exported to ${path} (${bytes(size)}).`,
    }
  },
})

/** Write an archive to a file, which has its name once all of it is there. Returns its size in bytes. */
async function save(archive: AsyncIterable<Uint8Array>, path: string): Promise<number> {
  const part = `${path}.part`
  const file = await open(part, 'w', 0o600)
  let size = 0
  try {
    let end: Uint8Array = new Uint8Array()
    for await (const chunk of archive) {
      await file.writeFile(chunk)
      size += chunk.length
      end = Buffer.concat([end, chunk.slice(-END_BYTES)]).subarray(-END_BYTES)
    }
    if (!END_SIGNATURE.equals(end.subarray(0, END_SIGNATURE.length)))
      throw new OperatorError('the server stopped in the middle of the archive: see its log, and try again')
    await file.sync()
    await link(part, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw new OperatorError(`${path} exists already`)
    throw error
  } finally {
    await file.close()
    await rm(part, { force: true })
  }
  return size
}

import { open, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { OperatorError } from '../../base/operator-error.ts'
import { cidOfBlobDigest } from '../../protocol/cid.ts'
import { accountCommand } from '../account/operator-accounts.ts'
import { bytes } from '../report.ts'

export const blobReadCommand = accountCommand({
  summary: 'Save a blob to a file, even if it is in quarantine or taken down.',
  parameters: ['<cid>', '[file]'],
  details: `By default, the file is named after the CID, in the current folder. An existing file is not replaced. The audit log
records who read the blob.`,
  async run({ server, account: { did }, path, positionals: [cid = '', given] }) {
    const file = resolve(given ?? cid.replace(/[^\w-]/g, '_'))
    const blob = server.download(`${path}/data/blob?${new URLSearchParams({ cid })}`)
    const size = await save(blob, file, cid)
    return { value: { did, cid, file, bytes: size }, text: `Saved to ${file} (${bytes(size)}).` }
  },
})

/** Returns the size in bytes. Deletes the file if its bytes have another CID. */
async function save(content: AsyncIterable<Uint8Array>, path: string, cid: string): Promise<number> {
  const file = await open(path, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EEXIST' ? new OperatorError(`${path} already exists`) : error
  })
  const hasher = new Bun.CryptoHasher('sha256')
  let size = 0
  let isWhole = false
  try {
    for await (const chunk of content) {
      hasher.update(chunk)
      size += chunk.length
      await file.writeFile(chunk)
    }
    isWhole = cidOfBlobDigest(hasher.digest()).toString() === cid
    if (!isWhole) throw new OperatorError('the download was cut off: see the log of the server, and try again')
  } finally {
    await file.close()
    if (!isWhole) await rm(path, { force: true })
  }
  return size
}

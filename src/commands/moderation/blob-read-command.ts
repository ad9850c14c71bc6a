import { resolve } from 'node:path'
import { cidOfBlobDigest } from '../../protocol/cid.ts'
import { accountCommand } from '../account/operator-accounts.ts'
import { type Completeness, requireNoFile, saveDownload } from '../downloads.ts'
import { bytes } from '../report.ts'

export const blobReadCommand = accountCommand({
  summary: 'Save a blob to a file, even if it is in quarantine or taken down.',
  parameters: ['<cid>', '[file]'],
  details: `By default, the file is named after the CID, in the current folder. An existing file is not replaced. The audit log
records who read the blob.`,
  async run({ server, account: { did }, path, positionals: [cid = '', given] }) {
    const file = resolve(given ?? cid.replace(/[^\w-]/g, '_'))
    const blob = server.download(`${path}/data/blob?${new URLSearchParams({ cid })}`)
    requireNoFile(file)
    const size = await saveDownload(blob, file, hasCid(cid))
    return { value: { did, cid, file, bytes: size }, text: `Saved to ${file} (${bytes(size)}).` }
  },
})

function hasCid(cid: string): Completeness {
  const hasher = new Bun.CryptoHasher('sha256')
  return {
    add: (chunk) => void hasher.update(chunk),
    isWhole: () => cidOfBlobDigest(hasher.digest()).toString() === cid,
  }
}

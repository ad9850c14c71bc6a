/** The names of the files in an archive. */
import { isCid } from '../../../protocol/cid.ts'

export const ARCHIVE_FORMAT = 'holdfast-account-archive'
export const ARCHIVE_VERSION = 1

const BLOB_FOLDER = 'blobs/'

/** Extensions of file names by media type, by which people's programs recognise files. */
const extensions = new Map([
  ['image/jpeg', '.jpg'],
  ['image/png', '.png'],
  ['image/gif', '.gif'],
  ['image/webp', '.webp'],
  ['image/avif', '.avif'],
  ['image/svg+xml', '.svg'],
  ['video/mp4', '.mp4'],
  ['video/webm', '.webm'],
  ['video/quicktime', '.mov'],
  ['audio/mpeg', '.mp3'],
  ['audio/ogg', '.ogg'],
  ['application/pdf', '.pdf'],
  ['application/json', '.json'],
  ['text/vtt', '.vtt'],
  ['text/plain', '.txt'],
])

const mediaTypes = new Map(Array.from(extensions, ([type, extension]) => [extension, type]))

export const archiveNames = {
  readMe: 'README.txt',
  manifest: 'manifest.json',
  account: 'account.json',
  preferences: 'preferences.json',
  repo: 'repo.car',
  blobList: 'blobs.csv',
  spaceList: 'spaces.json',
  space: (number: number) => `spaces/${number}.car`,
  table: (name: string) => `tables/${name}.csv`,
  blob: (cid: string, mimeType: string) => `${BLOB_FOLDER}${cid}${extensions.get(mimeType) ?? ''}`,
} as const

/** Returns the CID in the name of a blob's file; null if it is not the name of a blob's file. */
export function blobNamed(name: string): string | null {
  if (!name.startsWith(BLOB_FOLDER)) return null
  const [cid = '', extension, ...others] = name.slice(BLOB_FOLDER.length).split('.')
  const isPlain = others.length === 0 && (extension === undefined || /^[a-z0-9]{1,8}$/.test(extension))
  return isPlain && isCid(cid) ? cid : null
}

/** Returns the media type that a name suggests; null if none. */
export const mediaTypeOf = (name: string): string | null => mediaTypes.get(name.slice(name.lastIndexOf('.'))) ?? null

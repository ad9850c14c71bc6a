/**
 * Profile images from the time when a blob reference was `{ cid, mimeType }`. A client that edits another part of such
 * a profile sends them back unchanged; they are converted to today's form if this server has the blob.
 */
import type { Reader } from '../../../platform/database/database.ts'
import { parseCid } from '../../../protocol/cid.ts'
import { isLegacyBlob } from '../../../protocol/data-model.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { findReadable } from '../blobs/blobs.ts'

export const PROFILE = 'app.bsky.actor.profile'
const images = ['avatar', 'banner']

/** Returns the profile with convertible image references in today's form. */
export async function withPresentImages(
  reader: Reader,
  did: Did,
  profile: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const upgraded = await Promise.all(
    images.map(async (name) => [name, await inPresentForm(reader, did, profile[name])] as const),
  )
  return { ...profile, ...Object.fromEntries(upgraded.filter(([, image]) => image !== null)) }
}

/** Returns null if the image is not an old reference, or if the account does not have the blob. */
async function inPresentForm(reader: Reader, did: Did, image: unknown): Promise<object | null> {
  if (!isLegacyBlob(image)) return null
  const cid = parseCid(image.cid)!.toString()
  const blob = await findReadable(reader, did, cid)
  return blob && { $type: 'blob', ref: { $link: cid }, mimeType: image.mimeType, size: blob.size }
}

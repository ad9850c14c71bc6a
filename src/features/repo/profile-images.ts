/**
 * Images of profiles from the time when a reference to a blob was `{ cid, mimeType }`. A client that changes another
 * part of such a profile sends them back as they were, and they are brought into today's form when the blob is here.
 */
import type { Reader } from '../../platform/database/database.ts'
import { parseCid } from '../../protocol/cid.ts'
import { isLegacyBlob } from '../../protocol/data-model.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { findReadable } from '../blobs/blobs.ts'

export const PROFILE = 'app.bsky.actor.profile'
const images = ['avatar', 'banner']

export async function withPresentImages(reader: Reader, did: Did, profile: Record<string, unknown>): Promise<Record<string, unknown>> {
  const upgraded = await Promise.all(images.map(async (name) => [name, await inPresentForm(reader, did, profile[name])] as const))
  return { ...profile, ...Object.fromEntries(upgraded.filter(([, image]) => image !== null)) }
}

/** Null when it is no old reference, or the blob is not here. */
async function inPresentForm(reader: Reader, did: Did, image: unknown): Promise<object | null> {
  if (!isLegacyBlob(image)) return null
  const cid = parseCid(image.cid)!.toString()
  const blob = await findReadable(reader, did, cid)
  return blob && { $type: 'blob', ref: { $link: cid }, mimeType: image.mimeType, size: blob.size }
}

/** The media type of an upload: what its bytes say, else what its sender says. */
import { fileTypeFromBuffer } from 'file-type'

const UNKNOWN = 'application/octet-stream'

/** Text formats are recognised by words that any text may contain, and hold more types than a detector knows. */
const isText = (type: string): boolean => /^text\/|^application\/(json|xml|rtf)$|[+](json|xml)$/.test(type)

/** `head` are the first bytes; `declared` a type without parameters, or null. */
export async function mimeTypeOf(head: Uint8Array, declared: string | null): Promise<string> {
  const detected = (await fileTypeFromBuffer(head))?.mime
  if (detected !== undefined && !isText(detected)) return detected
  return declared ?? UNKNOWN
}

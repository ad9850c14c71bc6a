/** The media type of an upload: detected from its bytes, otherwise as declared by the sender. */

const UNKNOWN = 'application/octet-stream'

/** Text formats are recognised by words that any text may contain, and hold more types than a detector knows. */
const isText = (type: string): boolean => /^text\/|^application\/(json|xml|rtf)$|[+](json|xml)$/.test(type)

/**
 * `head` holds the first bytes; `declared` is a type without parameters, or null. The detector is loaded with the first
 * upload.
 */
export async function mimeTypeOf(head: Uint8Array, declared: string | null): Promise<string> {
  const { fileTypeFromBuffer } = await import('file-type')
  const detected = (await fileTypeFromBuffer(head))?.mime
  if (detected !== undefined && !isText(detected)) return detected
  return declared ?? UNKNOWN
}

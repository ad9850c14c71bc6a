/** Collects all bytes. Throws the error that `tooLong` makes if there are more than `maxBytes`. */
export async function wholeOf(
  pieces: AsyncIterable<Uint8Array>,
  maxBytes: number,
  tooLong: () => Error,
): Promise<Buffer> {
  const found: Uint8Array[] = []
  let count = 0
  for await (const piece of pieces) {
    count += piece.byteLength
    if (count > maxBytes) throw tooLong()
    found.push(piece)
  }
  return Buffer.concat(found)
}

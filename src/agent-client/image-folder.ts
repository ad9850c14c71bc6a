/**
 * The folder below which an assistant may read images. The person names the folder at start: an assistant reads what
 * strangers write, and strangers must not talk it into publishing other files of this computer.
 */
import { readFile, realpath, stat } from 'node:fs/promises'
import { resolve, sep } from 'node:path'
import { OperatorError } from '../base/operator-error.ts'

/** A post takes no larger image. Source: the lexicon app.bsky.embed.images. */
const MAX_IMAGE_BYTES = 2_000_000

export interface ImageFolder {
  readonly path: string
  /** Throws OperatorError unless the file is a regular file of acceptable size in the folder or below it. */
  read(path: string): Promise<Uint8Array<ArrayBuffer>>
}

/** Throws OperatorError if there is no such folder. */
export async function openImageFolder(given: string): Promise<ImageFolder> {
  const folder = await realpath(given).catch(() => null)
  if (folder === null || !(await stat(folder)).isDirectory()) throw new OperatorError(`there is no folder ${given}`)
  const inside = folder.endsWith(sep) ? folder : folder + sep
  return {
    path: folder,
    async read(path) {
      // Resolve symbolic links first. A file outside the folder is refused in the same words as a missing one.
      const file = await realpath(resolve(folder, path)).catch(() => null)
      const found = file?.startsWith(inside) ? await stat(file).catch(() => null) : null
      if (file === null || found?.isFile() !== true) throw new OperatorError(`there is no file ${path} in ${folder}`)
      checkImageSize(found.size)
      return Uint8Array.from(await readFile(file))
    },
  }
}

/** Throws OperatorError if an image is empty or too large. */
export function checkImageSize(bytes: number): void {
  if (bytes === 0) throw new OperatorError('the image is empty')
  if (bytes > MAX_IMAGE_BYTES)
    throw new OperatorError(`the image has ${bytes} bytes; a post takes images of up to ${MAX_IMAGE_BYTES}`)
}

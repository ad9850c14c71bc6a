/** The request cannot be answered here: the main thread can, or the machine that serves. */
export class Elsewhere extends Error {
  override name = 'Elsewhere'

  constructor(why: string) {
    super(`it has to be answered elsewhere: ${why}`)
  }
}

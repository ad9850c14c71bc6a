/** This thread cannot answer the request. The main thread can. */
export class Elsewhere extends Error {
  override name = 'Elsewhere'

  constructor(why: string) {
    super(`the main thread has to answer: ${why}`)
  }
}

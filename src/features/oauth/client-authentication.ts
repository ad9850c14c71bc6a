/** How a client proves who it is. */

/** The key that a confidential client authenticated with first. Its sessions stay bound to it. */
export interface ClientKey {
  kid: string
  alg: string
  jkt: string
}

/** Name resolution from a table that a test fills in. Unknown names do not exist. */
import type { Resolver } from '../../../src/platform/network/resolver.ts'

export interface FakeDns extends Resolver {
  /** The addresses of a host; an empty list takes the host away. */
  setAddresses(host: string, ...addresses: string[]): void
  /** The TXT records of a name. */
  setTexts(name: string, ...texts: string[]): void
  /** Answers for a handle the way its owner would publish it in DNS. */
  setHandle(handle: string, did: string): void
  /** Name servers stop answering, or answer again. */
  setBroken(broken: boolean): void
  readonly queries: string[]
}

export function fakeDns(): FakeDns {
  const addresses = new Map<string, string[]>([['localhost', ['127.0.0.1']]])
  const texts = new Map<string, string[]>()
  const queries: string[] = []
  let isBroken = false
  const answer = async (table: Map<string, string[]>, name: string) => {
    queries.push(name)
    if (isBroken) throw new Error('no name server answers')
    return table.get(name) ?? []
  }
  return {
    queries,
    addresses: (host) => answer(addresses, host),
    texts: (name) => answer(texts, name),
    setAddresses: (host, ...found) => void addresses.set(host, found),
    setTexts: (name, ...found) => void texts.set(name, found),
    setHandle: (handle, did) => void texts.set(`_atproto.${handle}`, [`did=${did}`]),
    setBroken: (broken) => void (isBroken = broken),
  }
}

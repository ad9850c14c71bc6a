/** The waiting client. Outside requests it is the server itself, with empty texts. */
export interface Client {
  /** The address, or the /64 network of an IPv6 address. */
  readonly address: string
  /** The /24 network of the address, or its /48 network for IPv6. */
  readonly network: string
  /** The /16 network of the address, or its /32 network for IPv6: providers have one or several. */
  readonly provider: string
}

/**
 * A level of the queue, whose members take turns: all providers, the networks of a provider, or the addresses of a
 * network.
 */
interface Line<T> {
  /** Items of all members, or of the address. */
  size: number
  /** In the order of their next turns. */
  readonly members: Map<string, Line<T>>
  readonly items: T[]
}

const emptyLine = <T>(): Line<T> => ({ size: 0, members: new Map(), items: [] })

/**
 * A queue in which providers take turns, and so do the networks of each provider and the addresses of each network.
 * However many items others have, the first item of a provider waits for at most one item of each other one.
 */
export class FairQueue<T> {
  readonly #all = emptyLine<T>()

  get size(): number {
    return this.#all.size
  }

  push({ provider, network, address }: Client, item: T): void {
    let line = this.#all
    line.size++
    for (const name of [provider, network, address]) {
      let member = line.members.get(name)
      if (member === undefined) line.members.set(name, (member = emptyLine()))
      member.size++
      line = member
    }
    line.items.push(item)
  }

  /** Removes and returns the next item of a network that `admits` accepts; undefined if there is none. */
  shift(admits: (network: string) => boolean): T | undefined {
    for (const [provider, { members: networks }] of this.#all.members)
      for (const [network, { members: addresses }] of networks) {
        if (!admits(network)) continue
        const [address, { items }] = addresses.entries().next().value!
        return this.#remove({ provider, network, address }, items[0]!)
      }
    return undefined
  }

  /** Remove an item of the client. Does nothing if it is not in the queue. */
  delete(client: Client, item: T): void {
    this.#remove(client, item, false)
  }

  /** Removes and returns the newest item of the provider, network and address that have most, if there is one. */
  dropLast(): T | undefined {
    if (this.size === 0) return undefined
    const [provider, { members: networks }] = largest(this.#all.members)
    const [network, { members: addresses }] = largest(networks)
    const [address, { items }] = largest(addresses)
    return this.#remove({ provider, network, address }, items.at(-1)!, false)
  }

  /** Returns the item if it was in the queue. `hadTurn`: its client and the networks around it go last from now on. */
  #remove({ provider, network, address }: Client, item: T, hadTurn = true): T | undefined {
    const lines = [this.#all]
    const names = [provider, network, address]
    for (const name of names) {
      const member = lines.at(-1)!.members.get(name)
      if (member === undefined) return undefined
      lines.push(member)
    }
    const { items } = lines.at(-1)!
    const index = items.indexOf(item)
    if (index < 0) return undefined
    items.splice(index, 1)
    for (const line of lines) line.size--
    for (const [depth, name] of names.entries()) {
      const { members } = lines[depth]!
      const member = lines[depth + 1]!
      if (hadTurn || member.size === 0) members.delete(name)
      if (hadTurn && member.size > 0) members.set(name, member)
    }
    return item
  }
}

/** Returns the member with most items, and of equal ones the last. There is one. */
const largest = <T>(members: ReadonlyMap<string, Line<T>>): [string, Line<T>] =>
  members.entries().reduce((most, entry) => (entry[1].size >= most[1].size ? entry : most))

/** Decides what a requested host serves. */
import type { Config } from '../platform/configuration/config.ts'
import { parseHost } from './host.ts'

/** The service itself, or a handle, whose host serves only the proof of that handle. */
export type Site = 'service' | 'handle'

export class Hosts {
  readonly #own: string
  readonly #suffixes: string[]
  /** The last `Host` header that named the service: nearly always the same one. */
  #known: string | null = null

  constructor(config: Pick<Config, 'publicUrl' | 'availableUserDomains'>) {
    this.#own = new URL(config.publicUrl).hostname
    this.#suffixes = config.availableUserDomains.map((domain) => `.${domain}`)
  }

  /** Returns null if the header is missing or not a valid host. */
  siteAt(header: string | null): Site | null {
    if (header === null) return null
    if (header === this.#known) return 'service'
    const name = parseHost(header)?.name
    if (name === undefined) return null
    if (name !== this.#own && this.#suffixes.some((suffix) => name.endsWith(suffix))) return 'handle'
    this.#known = header
    return 'service'
  }
}

/** Decides what a requested host serves. */
import type { Config } from '../platform/configuration/config.ts'
import { parseHost } from './host.ts'

/** The service by its present or a former name, or a handle, whose host serves only the proof of that handle. */
export type Site = 'service' | 'former' | 'handle'

type Names = Pick<Config, 'publicUrl' | 'formerUrls' | 'availableUserDomains'>

export class Hosts {
  #config: Names | null = null
  #own = ''
  #former: ReadonlySet<string> = new Set()
  #suffixes: string[] = []
  /** The last `Host` header that named the service: nearly always the same one. */
  #known: string | null = null

  /** `inForce` returns the same object until a name changes. */
  constructor(readonly inForce: () => Names) {}

  #read(config: Names): void {
    this.#config = config
    this.#known = null
    this.#own = new URL(config.publicUrl).hostname
    this.#former = new Set(config.formerUrls.map((url) => new URL(url).hostname).filter((name) => name !== this.#own))
    this.#suffixes = config.availableUserDomains.map((domain) => `.${domain}`)
  }

  /** Returns null if the header is missing or not a valid host. */
  siteAt(header: string | null): Site | null {
    const config = this.inForce()
    if (config !== this.#config) this.#read(config)
    if (header === null) return null
    if (header === this.#known) return 'service'
    const name = parseHost(header)?.name
    if (name === undefined) return null
    if (this.#former.has(name)) return 'former'
    if (name !== this.#own && this.#suffixes.some((suffix) => name.endsWith(suffix))) return 'handle'
    this.#known = header
    return 'service'
  }
}

/**
 * Looks up a value by method and path. A path may contain `:name` segments; an exact path wins over one with segments.
 */

interface Pattern<Value> {
  method: string
  segments: readonly string[]
  value: Value
}

interface Match<Value> {
  value: Value
  /** Values of the `:name` segments, percent-decoded. */
  params: Record<string, string>
}

export class PathTable<Value> {
  readonly #exact = new Map<string, Match<Value>>()
  readonly #patterns: Pattern<Value>[] = []
  readonly #methods = new Set<string>()
  /** Segments of the longest pattern: longer paths are not split. */
  #mostSegments = 0

  add(method: string, path: string, value: Value): void {
    const segments = path.split('/')
    this.#methods.add(method)
    if (segments.some(isName)) {
      this.#patterns.push({ method, segments, value })
      this.#mostSegments = Math.max(this.#mostSegments, segments.length)
    } else if (this.#exact.has(`${method} ${path}`)) throw new Error(`${method} ${path} is declared twice`)
    else this.#exact.set(`${method} ${path}`, { value, params: {} })
  }

  /** `path` as the client sent it; a trailing slash makes no difference. Returns null if nothing matches. */
  find(method: string, path: string): Match<Value> | null {
    const trimmed = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
    return this.#exact.get(`${method} ${trimmed}`) ?? this.#matching(method, trimmed.split('/', this.#mostSegments + 1))
  }

  /** Returns the methods with which the path would match, in alphabetical order. */
  methodsAt(path: string): string[] {
    return [...this.#methods].toSorted().filter((method) => this.find(method, path) !== null)
  }

  #matching(method: string, segments: readonly string[]): Match<Value> | null {
    for (const pattern of this.#patterns) {
      if (pattern.method !== method) continue
      const params = paramsOf(pattern.segments, segments)
      if (params !== null) return { value: pattern.value, params }
    }
    return null
  }
}

const isName = (segment: string): boolean => segment.startsWith(':')

/** Returns null if the path does not match, or if a value is not valid percent-encoding (RFC 3986 section 2.1). */
function paramsOf(pattern: readonly string[], segments: readonly string[]): Record<string, string> | null {
  if (pattern.length !== segments.length) return null
  const isAt = pattern.every((expected, i) => (isName(expected) ? segments[i] !== '' : segments[i] === expected))
  if (!isAt) return null
  try {
    return Object.fromEntries(
      pattern.flatMap((expected, i) =>
        isName(expected) ? [[expected.slice(1), decodeURIComponent(segments[i]!)]] : [],
      ),
    )
  } catch (error) {
    if (error instanceof URIError) return null
    throw error
  }
}

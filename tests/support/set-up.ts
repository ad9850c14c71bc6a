/** What the tests of a file share: made before them, and stopped after them. */
import { afterAll, beforeAll } from 'bun:test'

/**
 * Makes a value before the tests of the file or group, and disposes of it after them, if it can be disposed of. Returns
 * what stands for the value from the start, so that a file can name it at its top.
 *
 * Throws when a member is used before the value is made: outside of tests and hooks.
 */
export function setUp<Value extends object>(make: Maker<Value>, stop?: Stopper<Value>): Value {
  const { standIn, start, end } = prepare(make, stop)
  beforeAll(start)
  afterAll(end)
  return standIn
}

type Maker<Value> = () => Value | Promise<Value>
type Stopper<Value> = (value: Value) => unknown

export interface Prepared<Value> {
  /** Has the members of the value, once it is made. */
  standIn: Value
  start(): Promise<void>
  /** Does nothing if the value was not made. */
  end(): Promise<void>
}

/** As `setUp`, for a caller that says when. */
export function prepare<Value extends object>(make: Maker<Value>, stop: Stopper<Value> = disposed): Prepared<Value> {
  let value: Value | null = null
  return {
    standIn: standInFor(() => {
      if (value === null) throw new Error(`not made yet: only tests and hooks can use what is made by ${make}`)
      return value
    }),
    async start() {
      value = await make()
    },
    async end() {
      if (value !== null) await stop(value)
      value = null
    },
  }
}

async function disposed(value: Partial<Disposable & AsyncDisposable>): Promise<void> {
  if (value[Symbol.asyncDispose] !== undefined) await value[Symbol.asyncDispose]!()
  else value[Symbol.dispose]?.()
}

/** The value is looked up at each use. */
function standInFor<Value extends object>(value: () => Value): Value {
  return new Proxy({} as Value, {
    get(_, key) {
      const member: unknown = Reflect.get(value(), key)
      // Private fields are those of the value itself.
      return typeof member === 'function' ? member.bind(value()) : member
    },
    set: (_, key, member) => Reflect.set(value(), key, member),
    has: (_, key) => Reflect.has(value(), key),
    ownKeys: () => Reflect.ownKeys(value()),
    getOwnPropertyDescriptor(_, key) {
      const property = Reflect.getOwnPropertyDescriptor(value(), key)
      return property && { ...property, configurable: true }
    },
  })
}

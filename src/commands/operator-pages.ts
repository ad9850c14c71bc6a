import { OperatorError } from '../base/operator-error.ts'
import type { Parameters, Server } from './operator-server.ts'

interface Bounds {
  /** All of them when it is undefined. */
  limit: number | undefined
  /** The most that the route gives at a time. */
  pageSize: number
}

/** The items of a list that the server gives in pages; they are the member `name` of each. */
export async function pages<Item>(
  server: Server,
  path: string,
  name: string,
  parameters: Parameters,
  { limit = Infinity, pageSize }: Bounds,
): Promise<Item[]> {
  const items: Item[] = []
  let cursor: string | undefined
  do {
    const page = await server.get<Record<string, Item[]> & { cursor?: string }>(path, {
      ...parameters,
      limit: Math.min(pageSize, limit - items.length),
      cursor,
    })
    const found = page[name]
    if (!Array.isArray(found)) throw new OperatorError(`what answers at ${server.url} is no server of this kind`)
    items.push(...found)
    cursor = page.cursor
  } while (cursor !== undefined && items.length < limit)
  return items
}

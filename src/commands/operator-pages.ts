import { OperatorError } from '../base/operator-error.ts'
import type { Parameters, Server } from './operator-server.ts'

interface Bounds {
  /** Maximum number of items to return; undefined returns all. */
  limit: number | undefined
  /** Maximum page size of the route. */
  pageSize: number
}

/**
 * Read a paginated list. `name` is the member of each page that holds the items. Throws OperatorError if it holds none.
 */
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
    if (!Array.isArray(found)) throw new OperatorError(`${server.url} is not a Holdfast server`)
    items.push(...found)
    cursor = page.cursor
  } while (cursor !== undefined && items.length < limit)
  return items
}

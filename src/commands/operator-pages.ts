import { OperatorError } from '../base/operator-error.ts'
import type { Command } from './command.ts'
import { adminCommand } from './admin-command.ts'
import type { Parameters, Server } from './operator-server.ts'
import { table } from './report.ts'

/** Items in a page: no route allows fewer at most. */
const PAGE_ITEMS = 100

/**
 * Read a paginated list, of which `limit` items at most. `name` is the member of each page that holds the items. Throws
 * OperatorError if it holds none.
 */
export async function pages<Item>(
  server: Server,
  path: string,
  name: string,
  parameters: Parameters = {},
  limit = Infinity,
): Promise<Item[]> {
  const items: Item[] = []
  let cursor: string | undefined
  do {
    const page = await server.get<Record<string, Item[]> & { cursor?: string }>(path, {
      ...parameters,
      limit: Math.min(PAGE_ITEMS, limit - items.length),
      cursor,
    })
    const found = page[name]
    if (!Array.isArray(found)) throw new OperatorError(`${server.url} is not a Holdfast server`)
    items.push(...found)
    cursor = page.cursor
  } while (cursor !== undefined && items.length < limit)
  return items
}

interface ListCommand<Item> extends Pick<Command, 'summary' | 'details'> {
  path: string
  /** Member of each page that holds the items. */
  member: string
  /** The cells of a row, by the title of their column. */
  columns: Readonly<Record<string, (item: Item) => string>>
}

/** A command that lists all that a paginated route returns. */
export const listCommand = <Item>({ path, member, columns, ...command }: ListCommand<Item>): Command =>
  adminCommand({
    ...command,
    async run({ server }) {
      const items = await pages<Item>(server, path, member)
      const rows = items.map((item) => Object.values(columns).map((cell) => cell(item)))
      return { value: items, text: table(Object.keys(columns), rows) }
    },
  })

/** What `database_url` names, and how messages name it. */

export const isPostgresUrl = (databaseUrl: string): boolean => /^postgres(?:ql)?:\/\//.test(databaseUrl)

/** Returns the URL without its password, for messages. A path is returned as it is. */
export function withoutPassword(databaseUrl: string): string {
  if (!isPostgresUrl(databaseUrl)) return databaseUrl
  const parsed = URL.parse(databaseUrl)
  if (parsed === null) return 'postgres://…'
  parsed.password = ''
  return parsed.href
}

/** The statement that creates a database as the server needs it: text in the order of its bytes. */
export const createStatement = (name: string): string =>
  `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'`

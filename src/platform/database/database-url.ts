/** What `database_url` names, and how messages name it. */

export const isPostgresUrl = (databaseUrl: string): boolean => /^postgres(?:ql)?:\/\//.test(databaseUrl)

/** Parameters of the URL that carry a password, as for libpq. */
const secretParameters: ReadonlySet<string> = new Set(['password', 'sslpassword'])

/** Returns the URL without its passwords, for messages. A path is returned as it is. */
export function withoutPassword(databaseUrl: string): string {
  if (!isPostgresUrl(databaseUrl)) return databaseUrl
  const parsed = URL.parse(databaseUrl)
  if (parsed === null) return 'postgres://…'
  parsed.password = ''
  for (const name of parsed.searchParams.keys().toArray())
    if (secretParameters.has(name.toLowerCase())) parsed.searchParams.delete(name)
  return parsed.href
}

/** The statement that creates a database as the server needs it: text in the order of its bytes. */
export const createStatement = (name: string): string =>
  `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'`

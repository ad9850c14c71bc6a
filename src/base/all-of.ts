/** Resolves, once all members have, to an object of what they resolve to. Rejects with the first that does. */
export async function allOf<Members extends object>(
  members: Members,
): Promise<{ [Name in keyof Members]: Awaited<Members[Name]> }> {
  const values: unknown[] = await Promise.all(Object.values(members))
  return Object.fromEntries(Object.keys(members).map((name, index) => [name, values[index]])) as {
    [Name in keyof Members]: Awaited<Members[Name]>
  }
}

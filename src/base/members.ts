/** Whether it has named members, as an object in JSON does. */
export const hasMembers = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The members of an object in JSON; none if it is something else. */
export const membersOf = (value: unknown): Readonly<Record<string, unknown>> => (hasMembers(value) ? value : {})

/** Reading of cookies. */

/** Returns the value of a cookie of the request, or null. */
export const cookieOf = (request: Request, name: string): string | null =>
  cookieIn((request.headers.get('cookie') ?? '').split(/;\s*/), name)

/** Returns the value of the first cookie with this name; null if there is none. Attributes after it do not count. */
export const cookieIn = (cookies: readonly string[], name: string): string | null =>
  cookies
    .find((one) => one.startsWith(`${name}=`))
    ?.slice(name.length + 1)
    .split(';', 1)[0] ?? null

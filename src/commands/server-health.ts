/** What a running server says about itself at `/xrpc/_health`. */
import { fetchJson, inOneLine, NoAnswer } from '../base/server-request.ts'
import { SOFTWARE_NAME } from '../base/version.ts'

/** A health request is cheap, and the server itself gives up within two seconds. */
const TIMEOUT_MILLIS = 5000
const PAUSE_MILLIS = 250
const MAX_REASON_CHARS = 200

export interface ServerHealth {
  /** `absent`: nothing responds at the address, or another program does. */
  state: 'healthy' | 'failing' | 'absent'
  /** Name and version, such as `holdfast v1.2.3`; null if the server does not say. */
  software: string | null
  /** Why it is not healthy. */
  reason: string | null
}

/** Ask the server at this origin. Other servers have such an endpoint too. Never throws. */
export async function askHealth(url: string): Promise<ServerHealth> {
  try {
    const { status, body } = await fetchJson(`${url}/xrpc/_health`, {}, TIMEOUT_MILLIS)
    const { version, reason } = (body ?? {}) as { version?: unknown; reason?: unknown }
    const software = typeof version === 'string' ? inOneLine(version, MAX_REASON_CHARS) : null
    if (software !== null && !software.startsWith(`${SOFTWARE_NAME} `))
      return { state: 'absent', software, reason: `another program responds: ${software}` }
    if (status === 200 && software !== null) return { state: 'healthy', software, reason: null }
    const said = typeof reason === 'string' ? inOneLine(reason, MAX_REASON_CHARS) : `it returns status ${status}`
    return { state: 'failing', software, reason: said }
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error
    const { code, message } = error.cause as NodeJS.ErrnoException
    const reason = code === 'ECONNREFUSED' ? 'no server is listening' : `it cannot be reached: ${message}`
    return { state: 'absent', software: null, reason }
  }
}

/**
 * Ask until the server is healthy and, if `software` is given, runs that version, for at most `withinMillis`. Returns
 * the last answer, at once if the first one is good.
 */
export async function awaitHealth(
  url: string,
  { withinMillis, software = null }: { withinMillis: number; software?: string | null },
  pause: (millis: number) => Promise<void>,
): Promise<ServerHealth> {
  const endsAt = performance.now() + withinMillis
  for (;;) {
    const health = await askHealth(url)
    const isGood = health.state === 'healthy' && (software === null || health.software === software)
    if (isGood || performance.now() >= endsAt) return isGood ? health : judged(health, software)
    await pause(PAUSE_MILLIS)
  }
}

/** A healthy server of another version is not the expected one. */
const judged = (health: ServerHealth, software: string | null): ServerHealth =>
  health.state === 'healthy'
    ? { ...health, state: 'failing', reason: `${health.software} responds instead of ${software}` }
    : health

/**
 * Checks the clock against those of other services. A wrong clock makes other checks fail for reasons that they do not
 * name.
 */
import {
  certificateWords,
  differenceWords,
  secsAhead,
  WRONG_CLOCK_SECS,
} from '../../../platform/network/clock-comparison.ts'
import { fault, ok, TIMEOUT_MILLIS, warning, type Check, type Finding, type Patient } from './finding.ts'

const WARNING_SECS = 10

export const clockCheck: Check = { name: 'clock', run: checkClock }

/**
 * Compare the clock with the PLC directory or, if it does not answer or runs inside this process, with the AppView or a
 * relay.
 */
async function checkClock(patient: Patient): Promise<Finding> {
  const { config, now } = patient
  const witnesses = new Set(
    [config.plcDirectoryUrl, config.appview.url, ...config.crawlers.urls.slice(0, 1)].filter((url) => url !== null),
  )
  const failures: TimeFailure[] = []
  for (const url of witnesses) {
    const { host } = new URL(url)
    const told = await timeOf(patient, url)
    if (!told.ok) failures.push({ url, untimely: told.untimely })
    else return clockFinding(told.secsAhead, differenceWords(told.secsAhead, host))
  }
  return untrustedClock(now(), failures)
}

/**
 * A service that did not tell the time. `untimely`: why its certificate is not valid now; null if that is not the
 * reason.
 */
interface TimeFailure {
  url: string
  untimely: string | null
}

function clockFinding(secs: number, text: string): Finding {
  if (Math.abs(secs) > WRONG_CLOCK_SECS)
    return fault(
      text,
      'turn on time synchronisation (for example systemd-timesyncd): relays reject commits that are dated in the future',
    )
  return Math.abs(secs) > WARNING_SECS ? warning(text, 'turn on time synchronisation') : ok(text)
}

async function timeOf(
  { upstream, now }: Patient,
  url: string,
): Promise<{ ok: true; secsAhead: number } | { ok: false; untimely: string | null }> {
  try {
    const response = await upstream.fetch(`${url}/`, { headersTimeoutMillis: TIMEOUT_MILLIS })
    await response.body?.cancel()
    const secs = secsAhead(response.headers, now())
    return secs === null ? { ok: false, untimely: null } : { ok: true, secsAhead: secs }
  } catch (error) {
    return { ok: false, untimely: certificateWords((error as Error).cause) }
  }
}

/**
 * If the clock is days off, no certificate is valid, so ask for the time without authenticating the service. The answer
 * decides nothing.
 */
async function untrustedClock(now: number, failures: readonly TimeFailure[]): Promise<Finding> {
  const [first] = failures
  const hosts = failures.map(({ url }) => new URL(url).host).join(' and ')
  const untimely = failures.find((failure) => failure.untimely !== null)
  if (first === undefined || untimely === undefined)
    return warning('could not compare with another clock', `find out why ${hosts || 'no service'} cannot be reached`)
  const { host } = new URL(untimely.url)
  const response = await fetch(`${untimely.url}/`, {
    redirect: 'manual',
    tls: { rejectUnauthorized: false },
    signal: AbortSignal.timeout(TIMEOUT_MILLIS),
  }).catch(() => null)
  await response?.body?.cancel()
  const secs = response === null ? null : secsAhead(response.headers, now)
  if (secs === null || Math.abs(secs) <= WRONG_CLOCK_SECS)
    return warning(
      `could not compare with another clock: ${host}: ${untimely.untimely}`,
      'compare the clock of this machine with another one by hand',
    )
  return clockFinding(
    secs,
    `${differenceWords(secs, host)}, whose certificate is not valid according to this machine's clock`,
  )
}

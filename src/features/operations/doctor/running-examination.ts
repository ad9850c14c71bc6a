/**
 * The doctor's findings while the server runs. A request never waits for an examination: it gets the findings of the
 * last one, and starts another one in the background if they are old. Nothing is examined unless an operator looks.
 */
import { MINUTE_MILLIS } from '../../../base/durations.ts'
import { route } from '../../../http/endpoint.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { wireTimeOrNull, type Millis } from '../../../protocol/identifiers.ts'
import { operator } from '../operators/operators.ts'
import type { Examined } from './doctor.ts'

/** Older findings are renewed when an operator looks. */
const OLD_MILLIS = 10 * MINUTE_MILLIS

/** Checks that would delay requests, or send a large body through the proxy. Only `holdfast doctor` makes them. */
const leftOut: ReadonlySet<string> = new Set(['database', 'passphrase', 'continuous', 'body-size'])

interface Examination {
  examinedAt: Millis | null
  /** When the last examination began, by the monotonic clock. */
  beganAt: number
  isRunning: boolean
  findings: readonly Examined[]
}

const examinationOf = perContext((): Examination => ({
  examinedAt: null,
  beganAt: -Infinity,
  isRunning: false,
  findings: [],
}))

function renew(ctx: Context): Examination {
  const last = examinationOf(ctx)
  const now = ctx.clock.monotonic()
  if (last.isRunning || now - last.beganAt < OLD_MILLIS) return last
  Object.assign(last, { beganAt: now, isRunning: true })
  ctx.background.run('examine the deployment', async () => {
    try {
      const { examineAll } = await import('./doctor.ts')
      const { config, resolver, upstream, mailer, clock } = ctx
      const findings: Examined[] = []
      const patient = { config, resolver, upstream, mailer, now: () => clock.now() }
      for await (const examined of examineAll(patient, leftOut)) findings.push(examined)
      Object.assign(last, { findings, examinedAt: clock.now() })
    } finally {
      last.isRunning = false
    }
  })
  return last
}

/** The findings of this node. `examinedAt` is null until the first examination has ended. */
export const examinationRoute = route('GET', '/v1/admin/doctor', {
  auth: operator('observe'),
  async handler({ ctx }) {
    const { examinedAt, isRunning, findings } = renew(ctx)
    return {
      examinedAt: wireTimeOrNull(examinedAt),
      isRunning,
      leftOut: [...leftOut],
      findings: findings.map(({ name, finding: { state, text, ...rest } }) => ({
        check: name,
        state,
        text,
        remedy: 'remedy' in rest ? rest.remedy : null,
      })),
    }
  },
})

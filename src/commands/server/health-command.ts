import { ownUrl } from '../../platform/configuration/own-url.ts'
import { exitCodes, integerOption } from '../command.ts'
import { configured } from '../configuration.ts'
import { jsonOption, tellResult } from '../report.ts'
import { awaitHealth } from '../server-health.ts'

const MAX_WAIT_SECS = 3600

export const healthCommand = configured({
  summary: 'Check whether the running server works.',
  details: `For supervisors, containers and scripts: exits with 0 if the server can read and write, and with 1 if it cannot or does
not respond. Asks the server of the configuration directly, without a reverse proxy.`,
  options: {
    wait: { value: 'SECS', doc: 'Wait up to this long until it works.' },
    ...jsonOption,
  },
  async run(invocation) {
    const { terminal, config, options } = invocation
    const waitSecs = Math.min(integerOption(options, 'wait', 0) ?? 0, MAX_WAIT_SECS)
    const url = ownUrl(config)
    const health = await awaitHealth(url, { withinMillis: waitSecs * 1000 }, terminal.pause)
    const { state, software, reason } = health
    const text = state === 'healthy' ? `${software} at ${url} works` : `${url}: ${reason}`
    tellResult(invocation, { url, ...health }, text)
    return state === 'healthy' ? exitCodes.ok : exitCodes.failed
  },
})

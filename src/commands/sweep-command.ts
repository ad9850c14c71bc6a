import { withContext } from '../app.ts'
import { features } from '../features.ts'
import type { Config } from '../platform/config.ts'
import { OperatorError } from '../platform/operator-error.ts'
import { EXIT } from './command.ts'
import { configured } from './configuration.ts'

export const sweepCommand = configured({
  name: 'sweep',
  summary: 'Run one of the periodic passes now, and print its report.',
  parameters: ['name'],
  details: `Asks the running server to do it, with the admin token; when no server runs, does it itself. Without a name, prints
the names.`,
  async run({ terminal, config, positionals: [name] }) {
    const names = features.flatMap(({ sweeps = [] }) => sweeps.map((sweep) => sweep.name))
    if (name === undefined || !names.includes(name)) {
      terminal.out(names.join('\n'))
      return name === undefined ? EXIT.ok : EXIT.misused
    }
    terminal.out((await askServer(config, name)) ?? (await withContext(config, async ({ sweeps }) => JSON.stringify(await sweeps.run(name)))))
    return EXIT.ok
  },
})

/** The report of the running server; null when none runs here. */
async function askServer(config: Config, name: string): Promise<string | null> {
  const host = config.bindAddress === '0.0.0.0' || config.bindAddress === '::' ? '127.0.0.1' : config.bindAddress
  const headers = { authorization: `Bearer ${config.adminToken?.reveal() ?? ''}` }
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${config.port}/v1/admin/sweeps/${encodeURIComponent(name)}/run`
  const response = await fetch(url, { method: 'POST', headers }).catch((error: { code?: string }) => {
    if (error.code === 'ECONNREFUSED' || error.code === 'ConnectionRefused') return null
    throw error
  })
  if (response === null) return null
  if (config.adminToken === null) throw new OperatorError('a server runs here, and takes orders with the admin token only: set admin_token for both, or stop the server')
  if (response.ok) return response.text()
  throw new OperatorError(`the running server answered ${response.status}: ${await response.text()}`)
}

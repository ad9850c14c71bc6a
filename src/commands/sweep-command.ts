import { openContext } from '../app.ts'
import type { Config } from '../platform/config.ts'
import { OperatorError } from '../platform/operator-error.ts'
import { type Command, EXIT } from './command.ts'
import { loadOrExplain } from './load-or-explain.ts'

export const sweepCommand: Command = {
  name: 'sweep',
  summary: 'Run one of the periodic passes now, and print its report.',
  parameters: ['name'],
  details: `Asks the running server to do it, with the admin token; when no server runs, does it itself. Without a name, prints
the names.`,
  options: { dev: { doc: 'Use the configuration of "dev" instead of "serve".' } },
  async run({ terminal, positionals: [name], options }) {
    const config = loadOrExplain(terminal, options['dev'] === true ? 'dev' : 'serve', (warning) => terminal.err(`warning: ${warning}`))
    if (config === null) return EXIT.failed
    if (name !== undefined) {
      const report = await askServer(config, name)
      if (report !== null) {
        terminal.out(report)
        return EXIT.ok
      }
    }
    const undos: (() => void | Promise<void>)[] = []
    try {
      const ctx = await openContext(config, {}, undos)
      const names = ctx.sweeps.sweeps.map((sweep) => sweep.name)
      if (name === undefined || !names.includes(name)) {
        terminal.out(names.join('\n'))
        return name === undefined ? EXIT.ok : EXIT.misused
      }
      terminal.out(JSON.stringify(await ctx.sweeps.run(name)))
      return EXIT.ok
    } finally {
      for (const undo of undos.reverse()) await undo()
    }
  },
}

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
  if (response.ok) return response.text()
  throw new OperatorError(`the running server answered ${response.status}: ${await response.text()}`)
}

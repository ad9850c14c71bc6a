import { withContext } from '../../app.ts'
import { features } from '../../features.ts'
import type { Config } from '../../platform/configuration/config.ts'
import { exitCodes } from '../command.ts'
import { configured } from '../configuration.ts'
import { NoServer, serverOf } from '../operator-server.ts'

export const sweepCommand = configured({
  summary: 'Run a sweep now, and print its report.',
  parameters: ['[name]'],
  details: `Asks the running server to run it, with the admin token. If no server is running, runs it in this process.
Without a name, lists the sweeps.`,
  async run({ terminal, config, positionals: [name] }) {
    const names = features.flatMap(({ sweeps = [] }) => sweeps.map((sweep) => sweep.name))
    if (name === undefined || !names.includes(name)) {
      terminal.out(names.join('\n'))
      return name === undefined ? exitCodes.ok : exitCodes.misused
    }
    const report = (await askServer(config, name)) ?? (await withContext(config, ({ sweeps }) => sweeps.run(name)))
    terminal.out(JSON.stringify(report))
    return exitCodes.ok
  },
})

/** Run the sweep in the running server and return its report, or null if no server is running here. */
async function askServer(config: Config, name: string): Promise<unknown> {
  try {
    return await serverOf(config, config.adminToken?.reveal() ?? null).post(
      `/v1/admin/sweeps/${encodeURIComponent(name)}/run`,
    )
  } catch (error) {
    if (error instanceof NoServer) return null
    throw error
  }
}

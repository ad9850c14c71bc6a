import { withContext } from '../../app.ts'
import { features } from '../../features.ts'
import { adminCommand } from '../admin-command.ts'
import { type Invocation, Misuse } from '../command.ts'
import { configurationOf } from '../configuration.ts'
import { NoServer, type Server } from '../operator-server.ts'

export const sweepCommand = adminCommand({
  summary: 'Run a sweep now, and print its report.',
  parameters: ['[name]'],
  details: `Without a name, lists the sweeps. If no server of the configuration is running, the sweep runs in this process.`,
  async run({ server, positionals: [name], ...invocation }) {
    const names = features.flatMap(({ sweeps = [] }) => sweeps.map((sweep) => sweep.name))
    if (name === undefined) return { value: names, text: names.join('\n') }
    if (!names.includes(name)) throw new Misuse(`there is no such sweep; the sweeps are ${names.join(', ')}`)
    const report = await reportOf(server, name, invocation)
    return { value: report, text: JSON.stringify(report) }
  },
})

async function reportOf(server: Server, name: string, invocation: Omit<Invocation, 'positionals'>): Promise<unknown> {
  try {
    return await server.post(`/v1/admin/sweeps/${encodeURIComponent(name)}/run`)
  } catch (error) {
    const isHere = error instanceof NoServer && invocation.options['url'] === undefined
    const config = isHere ? configurationOf({ ...invocation, positionals: [] }, () => {}) : null
    if (config === null) throw error
    return withContext(config, ({ sweeps }) => sweeps.run(name))
  }
}

import { withContext } from '../../app.ts'
import { verifyEverything } from '../../features/operations/backup/backup.ts'
import { exitCodes } from '../command.ts'
import { commandLog, configured } from '../configuration.ts'
import { jsonOption, tellResult } from '../report.ts'

export const verifyCommand = configured({
  summary: 'Verify every stored repository, signature, record and blob.',
  details: `Reads everything, prints one line per fault, and exits with 1 if there are any. Changes nothing. Stop the server first.

Reads each repository twice, the second time with the libraries of the reference implementation, which do not depend
on this program. With --quick, reads it once.`,
  options: { quick: { doc: 'Skip the second, independent reading of each repository.' }, ...jsonOption },
  async run(invocation) {
    const { terminal, config, flags } = invocation
    const quick = flags.has('quick')
    const report = await withContext(config, (ctx) => verifyEverything(ctx, { onFault: terminal.err, quick }), {
      mayLackHistory: true,
      log: commandLog(invocation, config),
    })
    const { repos, blobs, faults, remedies } = report
    const text = `${repos} repositories and ${blobs} blobs verified, ${faults} faults`
    tellResult(invocation, report, [text, ...remedies].join('\n'))
    return faults === 0 ? exitCodes.ok : exitCodes.failed
  },
})

import { checks, examineAll, type Finding } from '../../features/operations/doctor/doctor.ts'
import { processLog } from '../../platform/running/log.ts'
import { createMailer } from '../../platform/network/mailer.ts'
import { createOutbound } from '../../platform/network/outbound.ts'
import { systemResolver } from '../../platform/network/resolver.ts'
import { exitCodes } from '../command.ts'
import { adminTokenFor, configured } from '../configuration.ts'

const marks: Record<Finding['state'], string> = { ok: 'ok   ', warning: 'warn ', fault: 'FAULT', skipped: '-    ' }

export const doctorCommand = configured({
  summary: 'Diagnose a deployment, and say how to fix each fault.',
  details: `Checks the disk, the database, its master key, backups, DNS, TLS, the server, the reverse proxy, the clock, mail, the
PLC directory and the relay. To check the reverse proxy, sends requests with the admin token through the public address.
Run it on the server's machine, as the same user, while "serve" is running. Changes nothing. Exits with 1 if there is a
fault.`,
  async run(invocation) {
    const { terminal } = invocation
    const config = { ...invocation.config, adminToken: adminTokenFor(invocation, invocation.config) }
    const resolver = systemResolver()
    const upstream = createOutbound({ resolver: systemResolver({ asksSystem: true }), reach: 'anywhere' })
    const mailer = createMailer(config, { upstream, log: processLog(config) })
    const width = Math.max(...checks.map(({ name }) => name.length))
    let faults = 0
    for await (const { name, finding } of examineAll({ config, resolver, upstream, mailer, now: Date.now })) {
      terminal.out(`${marks[finding.state]} ${name.padEnd(width)}  ${finding.text}`)
      if ('remedy' in finding) terminal.out(`${' '.repeat(width + 8)}→ ${finding.remedy}`)
      if (finding.state === 'fault') faults++
    }
    return faults === 0 ? exitCodes.ok : exitCodes.failed
  },
})

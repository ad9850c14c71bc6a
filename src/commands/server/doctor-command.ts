import { DAY_SECS, MINUTE_SECS } from '../../base/durations.ts'
import { changed, checks, examineAll, type Examined, type Finding } from '../../features/operations/doctor/doctor.ts'
import { variablesFiles } from '../../platform/configuration/config-files.ts'
import { processLog } from '../../platform/running/log.ts'
import { createMailer } from '../../platform/network/mailer.ts'
import { createOutbound } from '../../platform/network/outbound.ts'
import { systemResolver } from '../../platform/network/resolver.ts'
import { wireTime } from '../../protocol/identifiers.ts'
import { exitCodes, integerOption, type Terminal } from '../command.ts'
import { adminTokenFor, configured } from '../configuration.ts'
import { jsonOption, minute } from '../report.ts'

const marks: Record<Finding['state'], string> = { ok: 'ok   ', warning: 'warn ', fault: 'FAULT', skipped: '-    ' }
/** Time between two rounds of `--watch`, each of which sends a large body through the proxy. */
const EVERY_SECS = 5 * MINUTE_SECS
const MIN_EVERY_SECS = 10
/** A timer of more than 24 days would fire at once. */
const MAX_EVERY_SECS = DAY_SECS

/** Prints a finding. `was` is the previous state, if it has changed. */
type Print = (examined: Examined, was: Finding['state'] | null) => void

export const doctorCommand = configured({
  summary: 'Diagnose a deployment, and say how to fix each fault.',
  details: `Checks the disk, the database, its master key, backups, DNS, TLS, the server, the reverse proxy, the clock, mail, the
PLC directory and the relay. To check the reverse proxy, sends requests with the admin token through the public address.
Run it on the server's machine, as the same user, while "serve" is running. Changes nothing. Exits with 1 if there is a
fault. With --watch, repeats all checks until it is interrupted, and prints what has changed. --json prints one object
per line: at, check, state (ok, warning, fault or skipped), text, remedy, and was, the state before the change.`,
  options: {
    watch: { doc: 'Repeat the checks, and print changes only.' },
    every: { value: 'SECS', doc: `Time between two rounds of --watch, a day at most. ${EVERY_SECS} if omitted.` },
    ...jsonOption,
  },
  async run(invocation) {
    const { terminal, options, flags } = invocation
    const everySecs = Math.min(integerOption(options, 'every', MIN_EVERY_SECS) ?? EVERY_SECS, MAX_EVERY_SECS)
    const config = { ...invocation.config, adminToken: adminTokenFor(invocation, invocation.config) }
    const resolver = systemResolver()
    const upstream = createOutbound({ resolver: systemResolver({ asksSystem: true }), reach: 'anywhere' })
    const mailer = createMailer(config, { upstream, log: processLog(config) })
    const patient = { config, resolver, upstream, mailer, settings: variablesFiles(terminal.env), now: Date.now }
    const print = flags.has('json') ? jsonPrint(terminal) : textPrint(terminal)
    const found = new Map<string, Finding>()
    for await (const examined of examineAll(patient)) {
      print(examined, null)
      found.set(examined.name, examined.finding)
    }
    const isFaulty = () => found.values().some(({ state }) => state === 'fault')
    if (!flags.has('watch')) return isFaulty() ? exitCodes.failed : exitCodes.ok

    const closed = terminal.outputClosed().then(() => 'closed')
    while ((await Promise.race([closed, terminal.pause(everySecs * 1000)])) !== 'closed')
      for await (const examined of examineAll(patient)) {
        const before = found.get(examined.name)!
        found.set(examined.name, examined.finding)
        if (changed(before, examined.finding)) print(examined, before.state)
      }
    return isFaulty() ? exitCodes.failed : exitCodes.ok
  },
})

function textPrint(terminal: Terminal): Print {
  const width = Math.max(...checks.map(({ name }) => name.length))
  return ({ name, finding }, was) => {
    const at = was === null ? '' : `${minute(wireTime(terminal.now()))!}  `
    terminal.out(`${at}${marks[finding.state]} ${name.padEnd(width)}  ${finding.text}`)
    if ('remedy' in finding) terminal.out(`${' '.repeat(at.length + width + 8)}→ ${finding.remedy}`)
  }
}

const jsonPrint =
  (terminal: Terminal): Print =>
  ({ name, finding }, was) => {
    const { state, text } = finding
    const remedy = 'remedy' in finding ? finding.remedy : null
    terminal.out(JSON.stringify({ at: wireTime(terminal.now()), check: name, state, text, remedy, was }))
  }

/**
 * Examine a deployment from inside and outside: the disk, the database, how requests reach the server, and other
 * services. Each check reports what is wrong and what to do about it.
 */
import { fileFault } from '../../../platform/files/system-faults.ts'
import { clockCheck } from './clock-check.ts'
import { dataChecks } from './data-checks.ts'
import { fault, skipped, wordsOf, type Check, type Finding, type Patient } from './finding.ts'
import { logArchiveCheck } from './log-archive-check.ts'
import { networkChecks } from './network-checks.ts'
import { numberingCheck } from './numbering-check.ts'
import { secondMachineCheck } from './second-machine-check.ts'
import { serviceChecks } from './service-checks.ts'

export { certificateTerm, termWords } from './network-checks.ts'
export { fault, ok, warning, type Finding, type Patient } from './finding.ts'

export const checks: readonly Check[] = [
  ...dataChecks,
  logArchiveCheck,
  secondMachineCheck,
  numberingCheck,
  clockCheck,
  ...networkChecks,
  ...serviceChecks,
]

export interface Examined {
  name: string
  finding: Finding
}

/** Run all checks but those left out, in order. Skips a check if the one that it needs found a fault or was skipped. */
export async function* examineAll(
  patient: Patient,
  leftOut: ReadonlySet<string> = new Set(),
): AsyncGenerator<Examined> {
  const blocked = new Set<string>()
  for (const check of checks.filter(({ name }) => !leftOut.has(name))) {
    const finding =
      check.needs !== undefined && blocked.has(check.needs)
        ? skipped(`not checked: see ${check.needs}`)
        : await examine(check, patient)
    if (finding.state === 'fault' || finding.state === 'skipped') blocked.add(check.name)
    yield { name: check.name, finding }
  }
}

/** Whether a later finding of a check is news: its state differs, or its text in more than figures. */
export const changed = (before: Finding, after: Finding): boolean =>
  before.state !== after.state || withoutFigures(before.text) !== withoutFigures(after.text)

const withoutFigures = (text: string): string => text.replace(/\d+/g, '0')

/** Run the check of this name. */
export const examineOne = (name: string, patient: Patient): Promise<Finding> =>
  examine(
    checks.find((check) => check.name === name)!,
    patient,
  )

/** Run one check. Never throws: an unexpected error becomes a fault. */
export async function examine({ name, run }: Check, patient: Patient): Promise<Finding> {
  try {
    return await run(patient)
  } catch (error) {
    const { what, remedy } = fileFault(error) ?? {
      what: wordsOf(error),
      remedy: 'read the message: the check itself failed',
    }
    return fault(`could not check ${name}: ${what}`, remedy)
  }
}

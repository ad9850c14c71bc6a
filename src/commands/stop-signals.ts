/** The signals on which a command stops cleanly. */
import { readFileSync, rmSync } from 'node:fs'
import { exitCodes } from './command.ts'

const HANGUP_BIT = 1n

/**
 * SIGHUP, which the system sends when a terminal is closed, is one of them. The exception is a process that was started
 * to ignore it, as by `nohup`: a handler would undo that.
 */
export const stopSignals = (): NodeJS.Signals[] => [
  'SIGTERM',
  'SIGINT',
  ...(isHangupIgnored() ? [] : ['SIGHUP' as const]),
]

/**
 * If the command is stopped, delete a file or a folder with private contents that nothing else would delete. Returns a
 * function that cancels this.
 */
export function deleteIfInterrupted(path: string): () => void {
  const end = () => {
    rmSync(path, { recursive: true, force: true })
    process.exit(exitCodes.interrupted)
  }
  const signals = stopSignals()
  for (const signal of signals) process.on(signal, end)
  return () => signals.forEach((signal) => process.off(signal, end))
}

/** Only Linux tells which signals a process ignores. Elsewhere: `nohup` leaves a process no terminal to write to. */
function isHangupIgnored(): boolean {
  if (process.platform !== 'linux') return !process.stdout.isTTY
  const ignored = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'
  return (BigInt(`0x${ignored}`) & HANGUP_BIT) !== 0n
}

/**
 * Standard output as a log writes it. If its reader is slow, or stops reading, as `less` does, the runtime would keep
 * all further lines in memory. Lines wait here instead, within a bound; those beyond it are dropped and counted.
 */
import { madeOnce } from '../../base/made-once.ts'

/** Bytes of lines that wait for the reader; those that the runtime and the pipe have already taken are not counted. */
const MAX_WAITING_BYTES = 1024 * 1024

export class LogOutput {
  #isBlocked = false
  #waiting: string[] = []
  #waitingBytes = 0
  #dropped = 0
  #report: (dropped: number) => void = () => undefined

  constructor(readonly stream: Pick<NodeJS.WriteStream, 'write' | 'on'>) {
    // After an error, for example because the reader is gone, no `drain` follows.
    for (const event of ['drain', 'error']) stream.on(event, () => this.#resume())
  }

  /** Once the reader is back, `report` is called with the number of lines that were dropped after the last one. */
  write(line: string, report: (dropped: number) => void): void {
    const text = `${line}\n`
    if (this.#isBlocked) this.#hold(text, report)
    else this.#isBlocked = !this.stream.write(text)
  }

  #hold(text: string, report: (dropped: number) => void): void {
    const bytes = Buffer.byteLength(text)
    // Once a line is dropped, so are all that follow, so that there is one gap, and the report stands in its place.
    if (this.#dropped > 0 || this.#waitingBytes + bytes > MAX_WAITING_BYTES) {
      this.#dropped++
      this.#report = report
    } else {
      this.#waiting.push(text)
      this.#waitingBytes += bytes
    }
  }

  #resume(): void {
    if (!this.#isBlocked) return
    const text = this.#waiting.join('')
    const dropped = this.#dropped
    this.#waiting = []
    this.#waitingBytes = 0
    this.#dropped = 0
    this.#isBlocked = text !== '' && !this.stream.write(text)
    if (dropped > 0) this.#report(dropped)
  }
}

/** The process has one standard output, whichever logs write to it. */
export const standardOutput = madeOnce(() => new LogOutput(process.stdout))

/**
 * A loop that works off what arrives, one batch at a time: what arrives during a batch is left for the next one. So
 * batches are larger when the server is busier, and nothing runs while there is nothing to do.
 */
import { outsideRequests } from './request-scope.ts'

interface Options {
  /** Awaited before the first batch, so that what arrives in the same turn of the event loop shares it. */
  gathering?(): Promise<void>
}

export class BatchLoop {
  #isDue = false
  #running: Promise<void> | null = null

  /**
   * `batch` performs one batch. It resolves to true if there may be more to do. It must not reject: it knows the
   * callers that wait, and has to tell them of errors.
   */
  constructor(
    readonly batch: () => Promise<boolean>,
    readonly options: Options = {},
  ) {}

  get isRunning(): boolean {
    return this.#running !== null
  }

  /** Something has arrived. Starts a batch, or another one after the one that is under way. */
  wake(): void {
    this.#isDue = true
    this.#running ??= outsideRequests(() => this.#run())
  }

  /** Resolves once no batch is under way, and none is due. */
  async idle(): Promise<void> {
    while (this.#running !== null) await this.#running
  }

  async #run(): Promise<void> {
    try {
      if (this.options.gathering) await this.options.gathering()
      while (this.#isDue) {
        this.#isDue = false
        if (await this.batch()) this.#isDue = true
      }
    } finally {
      // Nothing is awaited after the flag was last read, so no wake-up is missed.
      this.#running = null
    }
  }
}

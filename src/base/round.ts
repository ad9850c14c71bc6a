/**
 * Goes through a list again and again, one page at a time, in an order that stays: rows that cannot be settled, and so
 * remain in the list, do not keep the rows behind them from their turn.
 */
export class Round<Row> {
  #last: Row | null = null

  /**
   * Returns the page after the last one; after the end of the list, the first. `read` returns at most `limit` rows that
   * follow a row, or the first ones.
   */
  async next(limit: number, read: (after: Row | null) => Promise<readonly Row[]>): Promise<readonly Row[]> {
    const rows = await read(this.#last)
    if (rows.length === 0 && this.#last !== null) {
      this.#last = null
      return this.next(limit, read)
    }
    this.#last = rows.length < limit ? null : rows.at(-1)!
    return rows
  }
}

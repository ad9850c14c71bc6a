/**
 * The configuration in force: what was loaded at the start, with the values that operators have replaced since. Those
 * are rows, which every node of a cluster reads: when it starts, when it is told of a change, and every few seconds.
 */
import { Signal } from '../../base/signal.ts'
import type { Config } from '../configuration/config.ts'
import { liveKey, withValues } from '../configuration/live-values.ts'
import { sql, type Reader, type Tx } from '../database/database.ts'

export const SETTINGS_CHANNEL = 'settings'

export class LiveConfig {
  /** The same object until a value is replaced. */
  current: Config
  /** The replaced values, as text, by the names of their keys. */
  replaced: ReadonlyMap<string, string> = new Map()
  /** Another value is in force. */
  readonly changed = new Signal()
  /** How many reads have begun, and which of them the values are from. */
  #begun = 0
  #read = 0

  constructor(readonly loaded: Config) {
    this.current = loaded
  }

  /** The read that began last counts, in whichever order reads end. */
  async reload(reader: Reader): Promise<void> {
    const turn = ++this.#begun
    const { current, replaced } = await this.read(reader)
    if (turn < this.#read) return
    this.#read = turn
    const isOther = current !== this.current
    this.current = current
    this.replaced = replaced
    if (isOther) this.changed.notify()
  }

  /** Returns the configuration that the rows make now, by which a transaction that changes them decides. */
  async read(reader: Reader): Promise<Pick<LiveConfig, 'current' | 'replaced'>> {
    const rows = await reader.all<{ name: string; value: string }>(sql`SELECT name, value FROM live_setting`)
    const { current, replaced } = this
    const isSame = rows.length === replaced.size && rows.every(({ name, value }) => replaced.get(name) === value)
    if (isSame) return { current, replaced }
    // A row of a newer version, or one that this version no longer takes, is left alone.
    const parsed = rows.flatMap(({ name, value }) => {
      const result = liveKey(name)?.field.kind.fromText(value)
      return result?.ok ? [{ name, text: value, value: result.value }] : []
    })
    return {
      current: withValues(this.loaded, new Map(parsed.map(({ name, value }) => [name, value]))),
      replaced: new Map(parsed.map(({ name, text }) => [name, text])),
    }
  }
}

/** Null as `value` restores the loaded value. */
export const setLiveValue = (tx: Tx, name: string, value: string | null): Promise<number> =>
  value === null
    ? tx.run(sql`DELETE FROM live_setting WHERE name = ${name}`)
    : tx.run(sql`
        INSERT INTO live_setting (name, value) VALUES (${name}, ${value})
        ON CONFLICT (name) DO UPDATE SET value = excluded.value`)

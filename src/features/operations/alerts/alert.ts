/** An alert is a value, and the table of alerts lists all of them. */
import { MINUTE_SECS } from '../../../base/durations.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Context } from '../../../platform/context.ts'

/** Time between two passes over the alerts. */
export const PASS_SECS = MINUTE_SECS
/** Most subjects of one alert; further ones are left out. */
export const MAX_SUBJECTS = 20

/** One subject for which the condition of an alert holds. */
export interface Sighting {
  /** What it is about, such as a sweep, if there may be several: at most `MAX_SUBJECTS`. Empty otherwise. */
  subject?: string
  /** The fact, with its figures, as the message tells it. */
  text: string
}

export interface Alert {
  /** Kebab-case; unique. Messages name it, and docs/alerts.md has a section of this name. */
  name: string
  /** Begins the message: `the disk is nearly full`. */
  title: string
  /** What to do about it. */
  remedy: string
  /** Each node looks for itself, because the answer differs from node to node. By default one node looks for all. */
  ofNode?: boolean
  /** Time between two checks. */
  everySecs: number
  /** How long the condition has to hold before operators are told. 0: they are told at once. */
  holdsForSecs: number
  /**
   * Returns every subject for which the condition holds now; none if all is well. Null if that is unknown, which
   * neither begins nor ends an alert. Errors count as unknown, and are logged.
   */
  look(ctx: Context): Promise<readonly Sighting[] | null>
}

/** Whether a message about an alert has a recipient. */
export const areAlertsOn = ({ alerts }: Config): boolean => alerts.mailTo.length > 0 || alerts.webhookUrl !== null

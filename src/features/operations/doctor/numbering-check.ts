/** Checks that a server numbers the events of a PostgreSQL database: subscribers see no event without a number. */
import { MINUTE_MILLIS } from '../../../base/durations.ts'
import { withDatabase } from '../../../platform/database/open-database.ts'
import { isPostgresUrl } from '../../../platform/database/database-url.ts'
import { EVENT_NUMBERS, unnumberedEvents } from '../../data/firehose/firehose.ts'
import { fault, hasTable, ok, skipped, warning, type Check, type Finding, type Patient } from './finding.ts'

/** Another server takes over within seconds. If events wait for longer than this, a person has to act. */
const LATE_MILLIS = MINUTE_MILLIS

export const numberingCheck: Check = { name: 'event-numbers', needs: 'database', run: checkNumbering }

async function checkNumbering({ config, now }: Patient): Promise<Finding> {
  if (!isPostgresUrl(config.databaseUrl)) return ok('events get their numbers as they are written')
  return withDatabase(config, async (db) => {
    if (!(await hasTable(db, 'unnumbered_event'))) return skipped('the database has not been migrated yet')
    const broken = (await hasTable(db, 'database_history')) ? await db.cluster!.history.found() : null
    if (broken !== null)
      return fault(
        `the database may have lost changes that it had acknowledged: ${broken.why}`,
        'read "After a failover or a restore" in docs/cluster.md; until then, no server starts, and no event gets a number',
      )
    const { count, oldestAt } = await unnumberedEvents(db)
    const [nodes, leases] = [await db.cluster!.nodes(), await db.cluster!.leases()]
    const lease = leases.find(({ name, isHeld }) => name === EVENT_NUMBERS && isHeld)
    const holder = nodes.find(({ id }) => id === lease?.holder)?.name
    const waiting = `${count} events are waiting for a number`
    if (oldestAt === null || now() - oldestAt < LATE_MILLIS)
      return ok(holder === undefined ? waiting : `${holder} numbers events; ${waiting}`)
    const late = `${waiting}, the oldest for ${Math.floor((now() - oldestAt) / 1000)} seconds`
    return lease === undefined
      ? warning(
          `${late}: no server is running that numbers them`,
          'start a server; until then, subscribers do not see these events',
        )
      : fault(
          `${late}, although ${holder ?? 'a server'} should number them`,
          'read its log for "could not number events"',
        )
  })
}

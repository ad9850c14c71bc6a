/** SQL of the `challenge_record` table: what the DNS responder publishes. */
import { sql, type Reader, type Writer } from '../../../platform/database/database.ts'

export interface ChallengeRecord {
  /** The names of the order. */
  names: string
  recordName: string
  value: string
}

export const insertChallengeRecord = (writer: Writer, { names, recordName, value }: ChallengeRecord): Promise<number> =>
  writer.run(sql`
    INSERT INTO challenge_record (names, record_name, value) VALUES (${names}, ${recordName}, ${value})
    ON CONFLICT (record_name, value) DO NOTHING`)

/** Records of orders that are placed at the authority. */
export const listChallengeRecords = (
  reader: Reader,
  limit: number,
): Promise<Pick<ChallengeRecord, 'recordName' | 'value'>[]> =>
  reader.all(sql`
    SELECT c.record_name AS "recordName", c.value FROM challenge_record c
    JOIN certificate_order o ON o.names = c.names AND o.url IS NOT NULL ORDER BY c.record_name, c.value LIMIT ${limit}`)

/** Delete the records of orders that have ended. */
export const deleteOldChallengeRecords = (writer: Writer): Promise<number> =>
  writer.run(sql`
    DELETE FROM challenge_record WHERE NOT EXISTS (
      SELECT 1 FROM certificate_order o WHERE o.names = challenge_record.names AND o.url IS NOT NULL)`)

/**
 * Which database the suite runs on, as its environment says. A test file that does not reach this module through its
 * imports is the same everywhere.
 */

/** Whether each server of the suite is two nodes of which each gets every other request: `TEST_DATABASE=cluster`. */
export const onCluster = process.env['TEST_DATABASE'] === 'cluster'

/** Whether the suite runs on PostgreSQL: `TEST_DATABASE=postgres`. */
export const onPostgres = onCluster || process.env['TEST_DATABASE'] === 'postgres'

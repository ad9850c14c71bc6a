/** What keeps a running server from continuing its chain. */
import { OperatorError } from '../../../base/operator-error.ts'

/** The chain cannot be continued. */
export class ChainBroken extends Error {}

/** Another process has continued the chain. */
export class ChainTaken extends ChainBroken {}

/** No base can be made until the operator has done something. */
export class BaseRefused extends Error {}

/** The database on this disk is older than what was acknowledged. */
export class OlderDatabase extends OperatorError {
  constructor(remedy = '') {
    super(
      `this database is an older copy: the continuous backup has writes that this database lacks. Restore them with "holdfast restore --at" into an empty data directory${remedy}`,
    )
  }
}

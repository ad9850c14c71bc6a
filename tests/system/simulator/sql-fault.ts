/** What a statement comes to. */

export type Answer = Record<string, unknown>[] & { count: number; command: string }

/** An error that PostgreSQL reports. The driver has the SQLSTATE in `errno`. */
export class SqlFault extends Error {
  readonly code = 'ERR_POSTGRES_SERVER_ERROR'

  constructor(
    readonly errno: string,
    message: string,
  ) {
    super(message)
  }
}

/** What the driver reports of a connection that is gone. */
export class LineLost extends Error {
  constructor(readonly code: string) {
    super('the connection is lost')
  }
}

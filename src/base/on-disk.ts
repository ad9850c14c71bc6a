/**
 * Returns an error of writing to an open file with `path`, the file or its folder, by which the report of the error
 * names the disk. The system names a file only when it is opened.
 */
export const onDisk = (error: unknown, path: string): unknown =>
  error instanceof Error && 'code' in error && !('path' in error) ? Object.assign(error, { path }) : error

/** Files that pages load from this origin. The URL changes with the content, so browsers may keep a file for ever. */
import { createHash } from 'node:crypto'
import { WholeResponse } from './encoding.ts'
import { route, type Endpoint } from './endpoint.ts'

export interface Asset {
  /** Path and version. */
  url: string
  route: Endpoint
}

/** `contentType` without the character set, which is UTF-8. */
export function asset(path: string, contentType: string, content: string): Asset {
  return {
    url: `${path}?v=${createHash('sha256').update(content).digest('hex').slice(0, 16)}`,
    route: route('GET', path, {
      handler: () =>
        new WholeResponse(content, {
          headers: {
            'Content-Type': `${contentType}; charset=utf-8`,
            'Cache-Control': 'public, max-age=31536000, immutable',
          },
        }),
    }),
  }
}

/** What the dispatcher may ask a listener about a request's connection, or ask it to do. */
import type { SocketHandler } from './endpoint.ts'

export interface Peer {
  /** Address of the direct peer, which may be a proxy; empty if the connection is gone. */
  addressOf(request: Request): string
  /** Clients reach the listener directly, so only the operator's proxies are believed: not every near peer is one. */
  readonly isDirect?: boolean
  /**
   * Whether the connection no longer needs a piece of a streamed response when it asks for the next one, so that the
   * memory of the piece can be used again.
   */
  readonly takesPieces?: boolean
  /** Lift the idle timeout of the connection, or restore it: it stays lifted after the response. */
  mayIdle(request: Request, may: boolean): void
  /**
   * Upgrade the connection to a WebSocket, which `handler` serves from then on. Returns false if it cannot be upgraded.
   */
  upgrade(request: Request, handler: SocketHandler): boolean
}

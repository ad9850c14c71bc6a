/** What a listener tells the dispatcher about the connection of a request, and does to it on request. */
import type { SocketHandler } from './endpoint.ts'

export interface Peer {
  /** Of the other end, without proxies seen through; empty when it is gone. */
  addressOf(request: Request): string
  /** The request may take as long as it takes. */
  withoutTimeout(request: Request): void
  /** Turn the connection into a WebSocket, which the handler serves from then on. False when it does not let itself be turned. */
  upgrade(request: Request, handler: SocketHandler): boolean
}

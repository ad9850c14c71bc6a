/** Exchanges with other servers over QUIC, which are addressed by their keys instead of by names. */

export interface Peer {
  /** The public key of the peer (Ed25519): 64 hexadecimal or 52 base32 characters. */
  nodeId: string
  /**
   * Where it may be reached in addition to what discovery finds, each `address:port`. IPv6 addresses are in brackets.
   */
  addresses: readonly string[]
}

export interface Peers {
  /** The id of this server, by which its peers know it: 64 lower-case hexadecimal characters. */
  readonly nodeId: string
  /**
   * Connects to a peer, which proves that it holds the key of its id. `alpn` names the protocol that both speak. Throws
   * if the peer cannot be reached, refuses the protocol, or has not responded after `timeoutMillis`.
   */
  dial(peer: Peer, alpn: string, timeoutMillis: number): Promise<PeerConnection>
}

export interface ExchangeLimits {
  maxBytes: number
  timeoutMillis: number
  silenceMillis: number
}

/** The caller closes it. A peer may do so at any time, and so does this server when it stops: exchanges then fail. */
export interface PeerConnection {
  /**
   * Sends a request on a stream of its own and returns the response, both complete: the end of the stream ends them.
   * Exchanges may overlap. Throws if the response is longer than `maxBytes`, if it is not complete after
   * `timeoutMillis`, or if the connection is lost, which is assumed when nothing at all comes within `silenceMillis`: a
   * peer that is there at least acknowledges. The connection is closed then, whatever the reason: a new one has to be
   * dialled, and other exchanges on this one fail too.
   */
  exchange(request: Uint8Array, limits: ExchangeLimits): Promise<Uint8Array>
  /** May be called more than once. */
  close(): void
}

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

/** The caller closes it. The peer may close it at any time, and this server does when it stops: exchanges then fail. */
export interface PeerConnection {
  /**
   * Sends a request on a stream of its own and returns the response; the end of the stream marks the end of each.
   * Exchanges may overlap. Throws if the response is longer than `maxBytes`, if it is not complete after
   * `timeoutMillis`, or if the connection is lost. It counts as lost if nothing at all arrives within `silenceMillis`:
   * a live peer at least acknowledges. After such an error the connection is closed, whatever the reason: other
   * exchanges on it fail too, and the caller has to dial another one.
   */
  exchange(request: Uint8Array, limits: ExchangeLimits): Promise<Uint8Array>
  /** May be called more than once. */
  close(): void
}

/**
 * The schema of a log line in JSON. Each field has one meaning and one type in every line, so log indexers can rely on
 * it. The compiler checks every caller against it.
 */
import { Type, type Static, type TObject } from '@sinclair/typebox'

export const logLevels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

/** Present in every line. */
const head = {
  /** RFC 3339 section 5.6, in UTC, with milliseconds. */
  timestamp: Type.String({ pattern: String.raw`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$` }),
  level: Type.Union(logLevels.map((level) => Type.Literal(level))),
  /** The component that writes the line. */
  target: Type.String(),
  /** What happened, as constant text: variable data goes into fields. */
  message: Type.String(),
}

const text = Type.Optional(Type.String())
const integer = Type.Optional(Type.Integer())

/** Optional fields. */
const fields = {
  /** Id of the request being handled; the same in all lines of that request. */
  requestId: text,
  /** Name of the process, if `node.name` is set. */
  node: text,
  error: Type.Optional(
    Type.Object({
      name: Type.String(),
      message: Type.String(),
      stack: Type.String(),
      cause: Type.Optional(Type.Unknown()),
    }),
  ),

  // What it is about
  did: text,
  handle: text,
  rev: text,
  path: text,
  cid: text,
  clientId: text,
  labeler: text,
  relay: text,
  /** Id by which peers know this server over QUIC. */
  nodeId: text,
  url: text,
  file: text,
  snapshot: text,
  sweep: text,
  alert: text,
  /** Id of a durable step, and its kind. */
  step: text,
  stepKind: text,
  tries: integer,
  /** Number of a key that seals push notifications. */
  kid: integer,
  /** Number of an event. */
  seq: integer,

  // Requests
  /** HTTP method of the request. */
  method: text,
  /** The template of the path, or the name of the method under `/xrpc`; never the path as requested. */
  route: text,
  status: integer,
  durationMillis: Type.Optional(Type.Number()),

  // Accounts and operators
  /** Who acted, if not the account holder: an operator, named as in the audit log. */
  actor: text,
  action: text,
  subject: text,
  /** How the user signed in. */
  means: text,
  /** Names of the app, browser and operating system. */
  program: text,
  /** Network of the client: /24 for IPv4, /48 for IPv6. */
  network: text,
  /** Address of a client that failed to sign in. */
  ip: text,
  deleteAfter: text,
  /** Lines that were omitted since the previous one: of this kind, or of all kinds if the log was read too slowly. */
  omitted: integer,

  // Why, and how it went
  reason: text,
  secs: integer,
  outcome: text,
  detail: text,
  warning: text,
  signal: text,
  report: text,

  // Tallies
  migrations: integer,
  missing: integer,
  restored: integer,
  copies: integer,
  accounts: integer,

  // The process
  software: text,
  publicUrl: text,

  // Mail that goes to the log instead of to people
  to: text,
  mailSubject: text,
  text,
}

export const logLine = Type.Object({ ...head, ...fields }, { additionalProperties: false })

type Written = Static<TObject<typeof fields>>

/** The fields that a caller may pass. `error` takes the error as it was thrown; null omits a field. */
export type Fields = Readonly<{
  [Name in keyof Written]?: Name extends 'error' ? unknown : Written[Name] | null | undefined
}>

/**
 * One line of the log in JSON: the schema of all of them. A name means one thing and has one type wherever it occurs, so
 * that whatever indexes lines can rely on it; the compiler holds whoever writes a line to it.
 */
import { Type, type Static, type TObject } from '@sinclair/typebox'

export const logLevels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

/** In every line. */
const head = {
  /** RFC 3339, in UTC, with milliseconds. */
  timestamp: Type.String({ pattern: String.raw`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$` }),
  level: Type.Union(logLevels.map((level) => Type.Literal(level))),
  /** The part of the service that speaks. */
  target: Type.String(),
  /** What happened, in words that do not vary. */
  message: Type.String(),
}

const text = Type.Optional(Type.String())
const integer = Type.Optional(Type.Integer())

/** What lines may add. */
const fields = {
  /** Of the request that was being answered. The same in all its lines. */
  requestId: text,
  error: Type.Optional(
    Type.Object({ name: Type.String(), message: Type.String(), stack: Type.String(), cause: Type.Optional(Type.Unknown()) }),
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
  url: text,
  file: text,
  snapshot: text,
  sweep: text,
  /** The id of a durable step, and what kind it is of. */
  step: text,
  stepKind: text,
  tries: integer,

  // Requests
  /** Of the HTTP request. */
  method: text,
  /** The template of a path, or the name of a method under `/xrpc`; never what was asked. */
  route: text,
  status: integer,
  durationMillis: Type.Optional(Type.Number()),

  // Accounts and operators
  /** Who acted, where it was not the account holder: an operator, as in the audit. */
  actor: text,
  action: text,
  subject: text,
  /** What let somebody in. */
  means: text,
  /** App, browser and system, in words. */
  program: text,
  /** /24 or /48. */
  network: text,
  /** Address of a client that failed to sign in. */
  ip: text,
  deleteAfter: text,
  /** Lines of this kind that were left out since the one before. */
  omitted: integer,

  // Why, and how it went
  reason: text,
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

/** What a line may be given: errors as they were thrown. What is null is left out. */
export type Fields = Readonly<{ [Name in keyof Written]?: Name extends 'error' ? unknown : Written[Name] | null | undefined }>

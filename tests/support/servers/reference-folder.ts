/** A data folder as the reference PDS leaves it: its tables, its names of files, and repositories that are whole. */
import { Database } from 'bun:sqlite'
import { createHash, createHmac, randomBytes, scryptSync } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { newSigningSecret, openSigningKey } from '../../../src/platform/secrets/signing-keys.ts'
import type { Block } from '../../../src/protocol/car.ts'
import { carOf } from '../../../src/protocol/car.ts'
import { encode, type DataObject } from '../../../src/protocol/cbor.ts'
import { cidOfBlob, cidOfCbor, parseCid } from '../../../src/protocol/cid.ts'
import { signCommit, unsignedCommit } from '../../../src/protocol/commit.ts'
import type { Did, Handle, Tid } from '../../../src/protocol/identifiers.ts'
import { formatDidKey, type SigningKey } from '../../../src/protocol/keys.ts'
import { buildTree } from '../../../src/protocol/mst.ts'
import { genesisDid, genesisOperation, signOperation, type Operation } from '../../../src/protocol/plc.ts'
import { nextTid } from '../../../src/protocol/tid.ts'

const accountTables = `
  CREATE TABLE kysely_migration (name TEXT PRIMARY KEY, timestamp TEXT NOT NULL);
  CREATE TABLE actor (did PRIMARY KEY, handle, createdAt, takedownRef, deactivatedAt, deleteAfter);
  CREATE TABLE account (did PRIMARY KEY, email, passwordScrypt, emailConfirmedAt, invitesDisabled DEFAULT 0);
  CREATE TABLE app_password (did, name, passwordScrypt, createdAt, privileged DEFAULT 0, PRIMARY KEY (did, name));
  CREATE TABLE invite_code (code PRIMARY KEY, availableUses, disabled DEFAULT 0, forAccount, createdBy, createdAt);
  CREATE TABLE invite_code_use (code, usedBy, usedAt, PRIMARY KEY (code, usedBy));
  CREATE TABLE refresh_token (id PRIMARY KEY, did, expiresAt, nextId, appPasswordName);
  CREATE TABLE repo_root (did PRIMARY KEY, cid, rev, indexedAt);
  CREATE TABLE email_token (purpose, did, token, requestedAt, PRIMARY KEY (purpose, did));
  CREATE TABLE authorization_request (id PRIMARY KEY, expiresAt);
  CREATE TABLE device (id PRIMARY KEY, sessionId, userAgent, ipAddress, lastSeenAt);
  CREATE TABLE account_device (did, deviceId, createdAt, updatedAt, PRIMARY KEY (deviceId, did));
  CREATE TABLE authorized_client (did, clientId, createdAt, updatedAt, data, PRIMARY KEY (did, clientId));
  CREATE TABLE token (id INTEGER PRIMARY KEY AUTOINCREMENT, did, tokenId, createdAt, updatedAt, expiresAt, clientId, clientAuth,
    deviceId, parameters, details, code, currentRefreshToken, scope);`
const sequencerTables = `
  CREATE TABLE kysely_migration (name TEXT PRIMARY KEY, timestamp TEXT NOT NULL);
  CREATE TABLE repo_seq (seq INTEGER PRIMARY KEY AUTOINCREMENT, did, eventType, event BLOB, invalidated DEFAULT 0, sequencedAt);`
const actorTables = `
  CREATE TABLE kysely_migration (name TEXT PRIMARY KEY, timestamp TEXT NOT NULL);
  CREATE TABLE repo_root (did PRIMARY KEY, cid, rev, indexedAt);
  CREATE TABLE repo_block (cid PRIMARY KEY, repoRev, size, content BLOB);
  CREATE TABLE record (uri PRIMARY KEY, cid, collection, rkey, repoRev, indexedAt, takedownRef);
  CREATE TABLE blob (cid PRIMARY KEY, mimeType, size, tempKey, width, height, createdAt, takedownRef);
  CREATE TABLE record_blob (blobCid, recordUri, PRIMARY KEY (blobCid, recordUri));
  CREATE TABLE account_pref (id INTEGER PRIMARY KEY AUTOINCREMENT, name, valueJson);`

export const FORMER_PASSWORD = 'the password from before'
const NOTE = 'org.example.note'

export interface FormerPerson {
  name: string
  records?: number
  /** Bytes of blobs; the first record refers to each. */
  blobs?: Uint8Array<ArrayBuffer>[]
  /** Its place in the blob folder; `quarantine` is that of a blob which is taken down. */
  blobRoom?: 'stored' | 'quarantine'
  deactivatedAt?: string
  deleteAfter?: string
  takedownRef?: string
  appPasswords?: string[]
  preferences?: object[]
  /** Signs the repository instead of the account's own key. */
  signer?: SigningKey
  /** What the identity names besides, by name. */
  furtherKeys?: Operation['verificationMethods']
  furtherServices?: Operation['services']
}

export interface LivedPerson {
  did: Did
  handle: string
  email: string
  password: string
  key: SigningKey
  secret: Uint8Array
  rev: Tid
  head: string
  blobs: string[]
  /** Its first operation, for the directory. */
  genesis: Operation
}

export interface LivedServer {
  /** The address that identities name. */
  url: string
  serverDid: string
  /** Handles are names under it. */
  domain: string
}

export class LivedFolder {
  readonly jwtSecret = randomBytes(32).toString('hex')
  readonly rotationSecret = newSigningSecret('k256')
  /** Of all accounts: hashing takes long. */
  readonly #passwordScrypt = scrypted(FORMER_PASSWORD, randomBytes(16).toString('hex'))
  readonly accounts: Database
  readonly sequencer: Database
  readonly blobs: string

  constructor(
    readonly path: string,
    readonly server: LivedServer,
  ) {
    mkdirSync(path, { recursive: true })
    this.blobs = join(path, 'blocks')
    this.accounts = open(join(path, 'account.sqlite'), accountTables, ['001', '002', '003', '004', '005', '006', '007'])
    this.sequencer = open(join(path, 'sequencer.sqlite'), sequencerTables, ['001'])
    this.writeEnv({})
  }

  writeEnv(changes: Record<string, string>): void {
    const env = {
      PDS_HOSTNAME: new URL(this.server.url).hostname,
      PDS_SERVICE_DID: this.server.serverDid,
      PDS_DATA_DIRECTORY: '/pds',
      PDS_BLOBSTORE_DISK_LOCATION: '/pds/blocks',
      PDS_JWT_SECRET: this.jwtSecret,
      PDS_PLC_ROTATION_KEY_K256_PRIVATE_KEY_HEX: Buffer.from(this.rotationSecret).toString('hex'),
      ...changes,
    }
    const lines = Object.entries(env).map(([name, value]) => `${name}=${value}\n`)
    writeFileSync(join(this.path, 'pds.env'), lines.join(''))
  }

  /** An account with its repository, blobs and file of its key. */
  add(person: FormerPerson): LivedPerson {
    const { name, blobs = [], appPasswords = [], preferences = [] } = person
    const secret = newSigningSecret('k256')
    const key = openSigningKey('k256', secret)
    const handle = `${name}.${this.server.domain}` as Handle
    const rotation = openSigningKey('k256', this.rotationSecret)
    const usual = genesisOperation({
      rotationKeys: [formatDidKey(rotation.publicKey)],
      signingKey: formatDidKey(key.publicKey),
      handle,
      pdsEndpoint: this.server.url,
    })
    const genesis = signOperation(
      {
        ...usual,
        verificationMethods: { ...usual.verificationMethods, ...person.furtherKeys },
        services: { ...usual.services, ...person.furtherServices },
      },
      rotation,
    )
    const did = genesisDid(genesis)
    const email = `${name}@example.com`
    const now = new Date().toISOString()
    insert(this.accounts, 'actor', {
      did,
      handle,
      createdAt: now,
      takedownRef: person.takedownRef ?? null,
      deactivatedAt: person.deactivatedAt ?? null,
      deleteAfter: person.deleteAfter ?? null,
    })
    insert(this.accounts, 'account', {
      did,
      email,
      passwordScrypt: this.#passwordScrypt,
      emailConfirmedAt: now,
    })
    const didSalt = createHash('sha256').update(did).digest('hex').slice(0, 32)
    for (const password of appPasswords)
      insert(this.accounts, 'app_password', {
        did,
        name: `app ${password.slice(0, 4)}`,
        passwordScrypt: scrypted(password, didSalt),
        createdAt: now,
        privileged: 1,
      })
    const folder = this.actorFolder(did)
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'key'), secret)
    const cids = blobs.map((bytes) => this.#storeBlob(did, bytes, person.blobRoom ?? 'stored'))
    const { rev, head } = this.#writeRepo(did, person, key, cids)
    const actor = this.actor(did)
    for (const [i, cid] of cids.entries())
      insert(actor, 'blob', {
        cid,
        mimeType: 'image/png',
        size: blobs[i]!.length,
        createdAt: now,
        takedownRef: person.blobRoom === 'quarantine' ? 'removed' : null,
      })
    for (const preference of preferences)
      insert(actor, 'account_pref', {
        name: (preference as { $type: string }).$type,
        valueJson: JSON.stringify(preference),
      })
    actor.close()
    return { did, handle, email, password: FORMER_PASSWORD, key, secret, rev, head, blobs: cids, genesis }
  }

  actorFolder(did: string): string {
    return join(this.path, 'actors', createHash('sha256').update(did).digest('hex').slice(0, 2), did)
  }

  actor(did: string): Database {
    return new Database(join(this.actorFolder(did), 'store.sqlite'), { strict: true })
  }

  #storeBlob(did: Did, bytes: Uint8Array<ArrayBuffer>, room: 'stored' | 'quarantine'): string {
    const cid = cidOfBlob(bytes).toString()
    const path = join(this.blobs, ...(room === 'stored' ? [] : [room]), did, cid)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, bytes)
    return cid
  }

  #writeRepo(
    did: Did,
    { records = 3, signer, name }: FormerPerson,
    key: SigningKey,
    blobs: string[],
  ): { rev: Tid; head: string } {
    const actor = open(join(this.actorFolder(did), 'store.sqlite'), actorTables, ['001'])
    let rev: Tid | null = null
    const written = Array.from({ length: records }, (_, i) => {
      rev = nextTid(rev, Date.now() * 1000, 7)
      const refs = i === 0 ? blobs.map((cid, at) => blobReference(cid, at)) : []
      const value = { $type: NOTE, text: `${name} ${i}`, blobs: refs } as unknown as DataObject
      const bytes = encode(value)
      return { path: `${NOTE}/${rev}`, rev, bytes, cid: cidOfCbor(bytes) }
    })
    const blocks: Block[] = written.map(({ cid, bytes }) => ({ cid, bytes }))
    const data = buildTree(
      written.map(({ path, cid }) => [path, cid] as const),
      (block) => blocks.push(block),
    )
    const last = nextTid(rev, Date.now() * 1000, 7)
    const commit = signCommit(unsignedCommit(did, last, data), signer ?? key)
    blocks.push(commit)
    const now = new Date().toISOString()
    actor.transaction(() => {
      for (const { cid, bytes } of blocks)
        actor.run('INSERT OR IGNORE INTO repo_block VALUES (?, ?, ?, ?)', [cid.toString(), last, bytes.length, bytes])
      for (const { path, cid, rev: writtenWith } of written) {
        const [collection, rkey] = path.split('/') as [string, string]
        actor.run('INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, NULL)', [
          `at://${did}/${path}`,
          cid.toString(),
          collection,
          rkey,
          writtenWith,
          now,
        ])
      }
    })()
    insert(actor, 'repo_root', { did, cid: commit.cid.toString(), rev: last, indexedAt: now })
    actor.close()
    insert(this.sequencer, 'repo_seq', {
      did,
      eventType: 'sync',
      event: encode({ did, rev: last, blocks: carOf(commit.cid, [commit]) }),
      sequencedAt: now,
    })
    return { rev: last, head: commit.cid.toString() }
  }

  /** A session, as `createSession` opens it. Returns its refresh token. */
  openSession(
    did: string,
    { appPassword = null, nextId = null }: { appPassword?: string | null; nextId?: string | null } = {},
  ) {
    const id = randomBytes(32).toString('base64').replace('=', '')
    const exp = Math.floor(Date.now() / 1000) + 90 * 24 * 3600
    insert(this.accounts, 'refresh_token', {
      id,
      did,
      expiresAt: new Date(exp * 1000).toISOString(),
      nextId,
      appPasswordName: appPassword,
    })
    const times = { iat: exp - 90 * 24 * 3600, exp }
    const claims = { aud: this.server.serverDid, sub: did, ...times }
    return {
      id,
      refreshJwt: this.#token('refresh+jwt', { scope: 'com.atproto.refresh', ...claims, jti: id }),
      accessJwt: this.#token('at+jwt', { scope: 'com.atproto.access', ...claims }),
    }
  }

  /** A refresh token that names no session, signed with the key of the server. */
  forge(did: string): string {
    const exp = Math.floor(Date.now() / 1000) + 3600
    const jti = randomBytes(32).toString('base64').replace('=', '')
    return this.#token('refresh+jwt', {
      scope: 'com.atproto.refresh',
      aud: this.server.serverDid,
      sub: did,
      iat: exp,
      exp,
      jti,
    })
  }

  /** An access token that names a session, signed with the key of the server. */
  forgeAccess(did: string, sessionId: string): string {
    const iat = Math.floor(Date.now() / 1000)
    return this.#token('at+jwt', {
      scope: 'com.atproto.access',
      aud: this.server.serverDid,
      sub: did,
      sid: sessionId,
      iat,
      exp: iat + 3600,
    })
  }

  #token(typ: string, payload: object): string {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const signed = `${part({ typ, alg: 'HS256' })}.${part(payload)}`
    return `${signed}.${createHmac('sha256', this.jwtSecret).update(signed).digest('base64url')}`
  }

  /** The session of an app. Returns its refresh token. */
  openAppSession(
    did: string,
    { clientId, jkt, scope }: { clientId: string; jkt: string | null; scope: string },
  ): string {
    const refreshToken = `ref-${randomBytes(32).toString('hex')}`
    const now = new Date().toISOString()
    insert(this.accounts, 'token', {
      did,
      tokenId: `tok-${randomBytes(16).toString('hex')}`,
      createdAt: now,
      updatedAt: now,
      expiresAt: now,
      clientId,
      clientAuth: JSON.stringify({ method: 'none' }),
      parameters: JSON.stringify({ client_id: clientId, scope, ...(jkt === null ? {} : { dpop_jkt: jkt }) }),
      currentRefreshToken: refreshToken,
      scope,
    })
    return refreshToken
  }

  /** A browser in which the account is signed in. Returns its cookies. */
  signInBrowser(did: string): string {
    const [id, sessionId] = [`dev-${randomBytes(16).toString('hex')}`, `ses-${randomBytes(16).toString('hex')}`]
    const now = new Date().toISOString()
    insert(this.accounts, 'device', { id, sessionId, userAgent: null, ipAddress: '192.0.2.1', lastSeenAt: now })
    insert(this.accounts, 'account_device', { did, deviceId: id, createdAt: now, updatedAt: now })
    return `dev-id=${id}; ses-id=${sessionId}`
  }

  invite(code: string, { forAccount = 'admin', usedBy }: { forAccount?: string; usedBy?: string }): void {
    const now = new Date().toISOString()
    insert(this.accounts, 'invite_code', {
      code,
      availableUses: 2,
      disabled: 0,
      forAccount,
      createdBy: 'admin',
      createdAt: now,
    })
    if (usedBy !== undefined) insert(this.accounts, 'invite_code_use', { code, usedBy, usedAt: now })
  }

  /** Stop the old server: what it held is on the disk. */
  close(): void {
    this.accounts.close()
    this.sequencer.close()
  }
}

function open(path: string, tables: string, migrations: string[]): Database {
  const database = new Database(path, { create: true, strict: true })
  for (const setting of ['journal_mode = WAL', 'synchronous = OFF']) database.run(`PRAGMA ${setting}`)
  database.run(tables)
  for (const name of migrations) insert(database, 'kysely_migration', { name, timestamp: new Date().toISOString() })
  return database
}

type Row = Record<string, string | number | Uint8Array | null>

export function insert(database: Database, table: string, row: Row): void {
  const names = Object.keys(row)
  database.run(
    `INSERT INTO "${table}" (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
    Object.values(row),
  )
}

const scrypted = (password: string, salt: string): string => `${salt}:${scryptSync(password, salt, 64).toString('hex')}`

const blobReference = (cid: string, at: number): DataObject =>
  ({ $type: 'blob', ref: parsed(cid), mimeType: 'image/png', size: at }) as unknown as DataObject

function parsed(cid: string) {
  const found = parseCid(cid)
  if (found === null) throw new Error(`not a CID: ${cid}`)
  return found
}

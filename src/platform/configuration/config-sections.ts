/** Every configuration key, in the order of the documentation. */
import { DAY_SECS, HOUR_SECS } from '../../base/durations.ts'
import { withoutTrailingSlashes } from '../../base/trailing.ts'
import { logLevels } from '../running/log-line.ts'
import { webDid } from './service-names.ts'
import { trustedIssuers } from './trusted-issuers.ts'
import { watchedLabelers } from './watched-labelers.ts'
import { derived, field, fileOnly, optional, required, section } from './config-fields.ts'
import {
  accentColour,
  boolean,
  bytes,
  checked,
  choice,
  databaseLocation,
  did,
  didKey,
  emailAddress,
  handleDomain,
  httpUrl,
  integer,
  ipAddress,
  key32,
  line,
  link,
  listOf,
  mapped,
  network,
  nodeId,
  originUrl,
  path,
  place,
  readerCount,
  scope,
  seconds,
  secret,
  serviceAddress,
  serviceId,
  socketAddress,
  text,
} from './config-kinds.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { languages } from '../../protocol/languages.ts'
import { MAX_WORK_BITS } from '../../protocol/proof-of-work.ts'
import { reservedLabels } from '../../protocol/reserved-labels.ts'

const MEBIBYTE = 1024 * 1024
/** Supervisors kill a process that takes longer to stop; the longest usual limit is several minutes. */
const MAX_DRAIN_SECS = 600

const lowerCaseList = mapped(listOf(text), (labels) =>
  [...new Set(labels.map((label) => label.trim().toLowerCase()))].toSorted(),
)

/** Sorted, as scopes of agents are stored and sent. */
const scopes = mapped(listOf(scope), (values) => [...new Set(values)].toSorted())

const handleDomains = checked(listOf(handleDomain), (domains) =>
  domains.length === 0 ? [{ at: '', fault: 'needs at least one domain' }] : [],
)

/** Create and update records, and upload blobs; no deletion and no account management. */
const agentScopes = ['atproto', 'blob:*/*', 'repo:*?action=create&action=update']

const perFiveMinutes = (limit: number, doc: string) =>
  field(integer(), { default: limit, doc: `${doc} Requests per client address in 5 minutes.` })

export const declared = {
  bindAddress: field(ipAddress, { default: '0.0.0.0', development: '127.0.0.1', doc: 'Listen address.' }),
  port: field(integer({ max: 65_535 }), {
    default: 8080,
    development: 2583,
    env: ['SERVICE_PORT', 'PORT'],
    doc: 'Listen port. 0: any free port.',
  }),
  dataDir: required(path, { development: './data', doc: 'Data directory. Created if it does not exist.' }),
  databaseUrl: field(databaseLocation, {
    default: derived('`{data_dir}/holdfast.db`', ({ dataDir }) => `${withoutTrailingSlashes(dataDir)}/holdfast.db`),
    doc: 'Database location: a path, a `sqlite:` URL, or a `postgres://` URL.',
  }),
  networkShareAllowed: field(boolean, {
    default: false,
    addition: true,
    doc: 'Start even if the data directory or the SQLite database is on a network share (NFS, SMB, 9p, sshfs and the like). Locks and flushes are unreliable on most shares, which can damage the database.',
  }),
  publicUrl: required(originUrl, {
    development: derived('`http://localhost:{port}`', ({ port }) => `http://localhost:${port}`),
    doc: 'Public base address: `https://` and a host, without a path.',
  }),
  formerUrls: field(listOf(originUrl), {
    default: [],
    addition: true,
    doc: 'Public addresses that this service had before it was renamed. The service still answers there, accepts tokens and identities that name them, and redirects its pages to `public_url`.',
  }),
  serviceName: field(line, { default: 'holdfast', doc: 'Display name of this service on pages and in mail.' }),
  serverDid: field(did, {
    default: derived('`did:web:` and the host of `public_url`', ({ publicUrl }) => webDid(publicUrl)),
    doc: 'DID of this service. If `public_url` has a port, so has the default; atproto allows a port in a did:web for `localhost` only.',
  }),
  availableUserDomains: required(handleDomains, {
    development: ['test'],
    replacedBy: 'holdfast config set',
    doc: 'Domains under which this service offers handles. At least one.',
  }),
  reservedHandles: field(lowerCaseList, {
    default: derived('a thousand names of hosts, mailboxes, services and known accounts', reservedLabels),
    doc: 'First labels that users cannot claim in a handle under `available_user_domains`; accounts that have one keep it. A value replaces the default list, which is that of the reference server plus a few names.',
  }),
  blockedHandleWords: field(lowerCaseList, {
    default: [],
    addition: true,
    replacedBy: 'holdfast config set',
    doc: 'Words that no handle may contain, even with separators between the letters or digits that look like them.',
  }),
  inviteCodeRequired: field(boolean, {
    default: true,
    development: false,
    replacedBy: 'holdfast config set',
    doc: 'Sign-up requires an invite code.',
  }),
  adminToken: optional(secret(text), {
    doc: 'Operator credential. If unset, only paired operator devices can call admin routes.',
  }),
  signingKeyMasterKey: optional(secret(key32), {
    inFile: 'is safer in the environment than in the file',
    doc: 'Key that encrypts the stored keys of accounts. If unset, the server creates `{data_dir}/master.key` at the first start, and offers neither createCeremony nor escrow.',
  }),
  plcDirectoryUrl: field<string | null>(httpUrl, {
    default: 'https://plc.directory',
    development: null,
    doc: 'PLC directory. `holdfast dev` runs its own directory inside the process.',
  }),
  development: field(boolean, {
    default: false,
    development: true,
    addition: true,
    doc: 'Allow plain http on localhost, and requests to loopback addresses. Never enable it on a public service.',
  }),
  trustedProxies: field(listOf(network), {
    default: [],
    addition: true,
    doc: 'Public addresses of reverse proxies whose `X-Forwarded-For` (or `Forwarded`, if that is absent) is trusted. Proxies at private and loopback addresses are always trusted, but not over connections that the server encrypts itself.',
  }),
  recoveryDidKey: optional(didKey, {
    addition: true,
    doc: 'A did:key placed before the rotation key of the service in every new did:plc identity.',
  }),

  tls: section({
    mode: field(choice('off', 'files', 'acme'), {
      default: 'off',
      addition: true,
      doc: 'Who encrypts connections: `off`, a reverse proxy in front of the server; `files`, the server, with certificates in files; `acme`, the server, with certificates that it gets and renews itself. See docs/certificates.md. Unless it is `off`, `port` is open on this machine only.',
    }),
    port: field(integer({ min: 1, max: 65_535 }), {
      default: 443,
      addition: true,
      doc: 'Port for HTTPS, on `bind_address`, unless `mode` is `off`.',
    }),
    httpPort: field(integer({ max: 65_535 }), {
      default: 80,
      addition: true,
      doc: 'Port on `bind_address` that redirects to HTTPS and answers HTTP-01 challenges. 0: none.',
    }),
    certificateFiles: field(listOf(path), {
      default: [],
      addition: true,
      doc: 'PEM files, each with a certificate followed by its chain. Required if `mode` is `files`. Changes to the files take effect within seconds.',
    }),
    keyFiles: field(listOf(path), {
      default: [],
      addition: true,
      doc: 'PEM files with the private keys, in the order of `certificate_files`.',
    }),
    acmeDirectoryUrl: field(httpUrl, {
      default: 'https://acme-v02.api.letsencrypt.org/directory',
      addition: true,
      doc: 'Directory of the certificate authority (RFC 8555), whose terms of service apply.',
    }),
    acmeRootFile: optional(path, {
      addition: true,
      doc: 'PEM file with the root certificate of a private certificate authority, for requests to its directory.',
    }),
    acmeEmail: optional(emailAddress, {
      addition: true,
      doc: 'Where the certificate authority sends notices. Unset: it gets no address.',
    }),
    acmeChallenge: field(choice('http-01', 'dns-01'), {
      default: 'http-01',
      addition: true,
      doc: 'How the server proves that it controls its names: `http-01`, through port 80, with a certificate for each handle; `dns-01`, through its own DNS responder, with one certificate for all handles. The latter needs a record `_acme-challenge.<domain> NS <host of public_url>` for each domain.',
    }),
    dnsAddress: optional(ipAddress, {
      addition: true,
      doc: 'Address of the DNS responder, which is open during a DNS-01 challenge only. Unset: `bind_address`.',
    }),
    dnsPort: field(integer({ min: 1, max: 65_535 }), {
      default: 53,
      addition: true,
      doc: 'Port of the DNS responder, UDP and TCP. Resolvers query port 53, so any other port needs a redirection from there.',
    }),
  }),

  database: section({
    afterFailover: field(choice('stop', 'continue'), {
      default: 'stop',
      addition: true,
      doc: 'What servers on PostgreSQL do if the database may have lost commits that it had acknowledged, as after a failover: `stop` until `holdfast restore --database-restored` was run, or `continue` with what is left. See docs/cluster.md.',
    }),
  }),

  node: section({
    name: optional(line, {
      addition: true,
      doc: 'Name of this process in log lines and metrics, for a server that consists of several. Unset: the host name, in the list of nodes only.',
    }),
    drainSecs: field(seconds({ max: MAX_DRAIN_SECS }), {
      default: 0,
      addition: true,
      doc: 'How long the server keeps serving after SIGTERM while `GET /readyz` already returns 503, so that a load balancer sends new requests elsewhere.',
    }),
  }),

  server: section({
    readers: field(readerCount, {
      default: 0,
      addition: true,
      doc: 'Threads that answer public reads beside the main thread: a number up to 16, or `auto` for one fewer than there are cores, at most four. They need SQLite and Linux, and serve the port for plain connections. See docs/performance.md.',
    }),
  }),

  links: section({
    privacyPolicy: optional(link, {
      env: fileOnly,
      doc: 'Privacy policy, shown in the server description and on pages.',
    }),
    termsOfService: optional(link, {
      env: fileOnly,
      doc: 'Terms of service, shown in the server description and on pages.',
    }),
    imprint: optional(link, {
      addition: true,
      doc: 'Page that says who runs this service, as some countries require, linked on pages and below mails.',
    }),
  }),

  pages: section({
    language: field(choice(...languages), {
      default: 'en',
      addition: true,
      doc: 'Language of pages and mails for people whose preference is not known.',
    }),
  }),

  brand: section({
    accentColor: optional(accentColour('light'), {
      addition: true,
      doc: 'Colour of buttons and links of pages in light mode, as `#rrggbb`. Refused if its contrast is too low to read.',
    }),
    accentColorDark: optional(accentColour('dark'), {
      addition: true,
      doc: 'Colour of buttons and links of pages in dark mode, as `accent_color`.',
    }),
    logoFile: optional(path, {
      addition: true,
      doc: 'Picture at the top of pages, instead of the Holdfast logo: PNG, JPEG or WebP of at most 100 KiB. Read when the server starts.',
    }),
  }),

  contact: section({
    email: optional(emailAddress, {
      env: fileOnly,
      doc: 'Admin contact, shown in the server description and on pages.',
    }),
  }),

  invites: section({
    intervalSecs: field(seconds(), {
      default: 0,
      addition: true,
      doc: 'Interval at which an account earns an invite code. 0: accounts earn none.',
    }),
    epochSecs: field(seconds(), {
      default: 0,
      addition: true,
      doc: 'Accounts earn invite codes only for time after this instant, in seconds since 1970.',
    }),
  }),

  accounts: section({
    passwordOptional: field(boolean, { default: false, doc: 'Accounts may be created without a password.' }),
    requireSecondFactor: field(boolean, {
      default: false,
      addition: true,
      doc: 'Every sign-in with a password needs a second factor: that of the account or, if it has none, a code mailed to its address. Accounts without an address can then sign in only with a wallet or an app password.',
    }),
    refuseThrowAwayEmail: field(boolean, {
      default: true,
      addition: true,
      replacedBy: 'holdfast config set',
      doc: 'Refuse email addresses of disposable-mail services. The list is part of the program.',
    }),
    deletionReaperIntervalSecs: field(seconds({ min: 1 }), {
      default: HOUR_SECS,
      doc: 'Time between passes that delete accounts whose deletion is due.',
    }),
    childDeletionGraceSecs: field(seconds(), {
      default: DAY_SECS,
      doc: 'Time from the deletion of a child account until its data is purged. 0: the next pass.',
    }),
  }),

  signup: section({
    accountsPerRangeAndDay: field(integer(), {
      default: 0,
      addition: true,
      replacedBy: 'holdfast config set',
      doc: 'Accounts that can be created from one address range (/24 in IPv4, /48 in IPv6) in 24 hours. 0: no limit. Loopback and private addresses have no limit.',
    }),
    requireConfirmedAddress: field(boolean, {
      default: false,
      addition: true,
      replacedBy: 'holdfast config set',
      doc: 'Accounts with an email address have to confirm it before they can write their first record.',
    }),
    question: optional(line, {
      addition: true,
      replacedBy: 'holdfast config set',
      doc: 'Question that sign-ups have to answer with one of `signup.answers`. Unset: none. Accounts that move here or begin with a claim code are not asked.',
    }),
    answers: field(listOf(line), {
      default: [],
      addition: true,
      replacedBy: 'holdfast config set',
      doc: 'Accepted answers to `signup.question`. Case and spaces are ignored.',
    }),
    proofOfWorkBits: field(integer({ max: MAX_WORK_BITS }), {
      default: 0,
      addition: true,
      replacedBy: 'holdfast config set',
      doc: 'Work, in bits, that a browser has to do for a sign-up while no invite code is required. Each further bit doubles it; 16 bits take a second or two. 0: none.',
    }),
  }),

  waitlist: section({
    enabled: field(boolean, { default: false, replacedBy: 'holdfast config set', doc: 'Offer `POST /waitlist`.' }),
  }),

  recovery: section({
    releaseDelaySecs: field(seconds({ max: 365 * DAY_SECS }), {
      default: DAY_SECS,
      doc: 'Time between the request for an escrowed share and its release. The holder can cancel it until then. 0: at once.',
    }),
  }),

  repos: section({
    importsEnabled: field(boolean, { default: true, addition: true, doc: 'Accounts may import a repository.' }),
    maxImportSize: field(bytes({ min: 1 }), {
      default: 256 * MEBIBYTE,
      addition: true,
      doc: 'Largest repository import.',
    }),
    maxRecordsPerAccount: field(integer(), {
      default: 0,
      addition: true,
      replacedBy: 'holdfast quota set',
      doc: 'Records per account. 0: no limit. `holdfast quota set` replaces it while the server runs.',
    }),
  }),

  blobs: section({
    maxBlobSize: field(bytes({ min: 1 }), { default: 50 * MEBIBYTE, env: fileOnly, doc: 'Largest blob.' }),
    maxStoragePerAccount: field(bytes(), {
      default: 1024 * MEBIBYTE,
      env: fileOnly,
      replacedBy: 'holdfast quota set',
      doc: 'Blob storage per account. 0: no limit. `holdfast quota set` replaces it while the server runs.',
    }),
    gcIntervalSecs: field(seconds({ min: 1 }), {
      default: 1800,
      doc: 'Time between passes of the blob garbage collector.',
    }),
    tempTtlSecs: field(seconds(), {
      default: 21_600,
      env: fileOnly,
      doc: 'Time for which a blob that no record references is kept. 0: until the next pass.',
    }),
    store: field(choice('folder', 's3'), {
      default: 'folder',
      addition: true,
      doc: 'Where blobs are kept: `folder`, in the data directory, or `s3`, in a bucket of an S3-compatible store.',
    }),
    s3Bucket: optional(text, { addition: true, doc: 'Bucket that holds the blobs. Required if `store` is `s3`.' }),
    s3Endpoint: optional(httpUrl, { addition: true, doc: 'Endpoint of the bucket. Required if `store` is `s3`.' }),
    s3Region: field(text, { default: 'auto', addition: true, doc: 'Region used in request signatures.' }),
    s3AccessKeyId: optional(text, {
      addition: true,
      env: ['SERVICE_BLOBS_S3_ACCESS_KEY_ID', 'AWS_ACCESS_KEY_ID'],
      doc: 'Required if `store` is `s3`.',
    }),
    s3SecretAccessKey: optional(secret(text), {
      addition: true,
      env: ['SERVICE_BLOBS_S3_SECRET_ACCESS_KEY', 'AWS_SECRET_ACCESS_KEY'],
      doc: 'Required if `store` is `s3`.',
    }),
    s3ForcePathStyle: field(boolean, {
      default: false,
      addition: true,
      doc: 'Address the bucket as `{endpoint}/{bucket}` instead of by host name.',
    }),
    s3KeyPrefix: field(text, {
      default: 'blobs/',
      addition: true,
      doc: 'Prefix of the object keys, ending in `/`. Only the servers of one database may store objects under it.',
    }),
  }),

  blobMirror: section({
    bucket: optional(text, { doc: 'S3-compatible bucket that receives a copy of every blob. Unset: no mirror.' }),
    endpoint: optional(httpUrl, { doc: 'Endpoint of the bucket. Required with `bucket`.' }),
    region: field(text, { default: 'auto', doc: 'Region used in request signatures.' }),
    accessKeyId: optional(text, { doc: 'Required with `bucket`.' }),
    secretAccessKey: optional(secret(text), { doc: 'Required with `bucket`.' }),
    forcePathStyle: field(boolean, {
      default: false,
      doc: 'Address the bucket as `{endpoint}/{bucket}` instead of by host name.',
    }),
    keyPrefix: field(text, {
      default: 'blobs/',
      doc: 'Prefix of the object keys. Nothing else may store objects under it.',
    }),
    syncIntervalSecs: field(seconds({ min: 1 }), { default: 300, doc: 'Time between mirror passes.' }),
  }),

  blobScrub: section({
    autoHeal: field(boolean, {
      default: true,
      doc: 'Replace a damaged blob file with a verified copy from the mirror: in a scrub, and when it is read.',
    }),
    intervalSecs: field(seconds({ min: 1 }), {
      default: 21_600,
      doc: 'Time between passes that verify the hash of every stored blob.',
    }),
    bytesPerSec: field(bytes({ min: 64 * 1024 }), {
      default: 50 * MEBIBYTE,
      addition: true,
      doc: 'Most bytes per second that a scrub or mirror pass reads from the disk or the bucket.',
    }),
  }),

  archives: section({
    folder: optional(path, {
      addition: true,
      doc: 'Folder of the archives that the server makes for account holders who want one every week or month. Unset: holders can only download an archive. On a cluster, all nodes must share the folder.',
    }),
    keep: field(integer({ min: 1, max: 100 }), {
      default: 2,
      addition: true,
      doc: 'Number of these archives to keep for each account.',
    }),
  }),
  backup: section({
    destination: optional(place, {
      addition: true,
      doc: 'Destination of backups: a folder, or `s3://bucket/prefix` at `blob_mirror.endpoint` with the access keys of `blob_mirror`.',
    }),
    intervalSecs: field(seconds(), {
      default: 0,
      addition: true,
      doc: 'Time between scheduled backups. 0: no scheduled backups.',
    }),
    keep: field(integer({ min: 1 }), { default: 7, addition: true, doc: 'Number of scheduled backups to keep.' }),
    bucketBlobs: field(boolean, {
      default: false,
      addition: true,
      doc: 'Copy blobs into backups even if they are in a bucket (`blobs.store`). Otherwise versioning of that bucket has to keep them.',
    }),
    continuous: optional(place, {
      addition: true,
      doc: 'Destination of the continuous backup of a SQLite database: a folder on another disk, or a bucket as in `destination`; it may be the same one.',
    }),
    continuousPromise: field(choice('async', 'sync'), {
      default: 'async',
      addition: true,
      doc: '`async`: a write is acknowledged once it is on the disk, and is in the continuous backup soon after. `sync`: a write is acknowledged only once it is in the continuous backup too, and is refused while the destination is unreachable.',
    }),
    takeoverSecs: field(seconds(), {
      default: 0,
      addition: true,
      doc: 'How long the lease of the server is valid after a renewal, at least 3. If it is not renewed for 1.25 times that long, a machine that runs `holdfast follow` takes over. Needs `continuous_promise = "sync"`. 15 is a good value. 0: it takes over only on `holdfast promote`. See docs/second-machine.md.',
    }),
    continuousLagMs: field(integer({ min: 100, max: 60_000 }), {
      default: 1000,
      addition: true,
      doc: 'Time within which a commit is in the continuous backup, in milliseconds, as long as the destination keeps up.',
    }),
    continuousKeepSecs: field(seconds({ min: 60 }), {
      default: 7 * DAY_SECS,
      addition: true,
      doc: 'Time for which the continuous backup can be restored to any instant.',
    }),
    continuousBaseSecs: field(seconds({ min: 60 }), {
      default: DAY_SECS,
      addition: true,
      doc: 'Time after which the continuous backup copies the whole database again. A restore applies all writes since the copy.',
    }),
    continuousSpoolBytes: field(integer({ min: 1024 ** 2 }), {
      default: 1024 ** 3,
      addition: true,
      doc: 'Most bytes that wait in the data directory while the destination of the continuous backup is unreachable. Beyond this, the backup starts over with a copy of the whole database.',
    }),
    passphrase: optional(secret(text), {
      addition: true,
      doc: 'Passphrase that encrypts backups (age format). If unset, backups are as readable as the data directory.',
    }),
    workFactor: field(integer({ min: 10, max: 20 }), {
      default: 18,
      addition: true,
      doc: 'Base-2 logarithm of the scrypt cost with which the passphrase encrypts a new destination. 18 takes 256 MiB of memory and a second, for a restore too; each step down halves both.',
    }),
  }),

  firehose: section({
    gcIntervalSecs: field(seconds({ min: 1 }), {
      default: HOUR_SECS,
      doc: 'Time between retention passes over the event log.',
    }),
    logRetentionSecs: field(seconds(), {
      default: 604_800,
      env: fileOnly,
      doc: 'Age at which events may be pruned. 0: age does not matter.',
    }),
    logRetentionCount: field(integer(), {
      default: 0,
      env: fileOnly,
      doc: 'Maximum number of events to keep. 0: the count does not matter.',
    }),
    maxSubscribers: field(integer(), {
      default: 500,
      addition: true,
      doc: 'Maximum number of concurrent subscribers of the event stream. 0: no limit.',
    }),
    maxSubscribersPerAddress: field(integer(), {
      default: 10,
      addition: true,
      doc: 'Maximum number of concurrent subscribers per client address. 0, or without `rate_limit.enabled`: no limit.',
    }),
    stalledSecs: field(seconds({ min: 1, max: DAY_SECS }), {
      default: 120,
      addition: true,
      doc: 'Idle limit for a subscriber whose buffer is full. It is disconnected if it reads nothing for this long, even if it answers pings.',
    }),
  }),

  crawlers: section({
    urls: field(listOf(serviceAddress), {
      default: ['https://bsky.network'],
      development: [],
      env: ['SERVICE_CRAWLERS'],
      doc: 'Relays to notify of new content. Empty: none.',
    }),
  }),

  integrity: section({
    roundSecs: field(seconds(), {
      default: 7 * DAY_SECS,
      addition: true,
      doc: 'Time within which every repository is read and checked while the server runs: its records, tree and signature against each other, the event log and the references to blobs. 0: not checked.',
    }),
    cpuPercent: field(integer({ min: 1, max: 100 }), {
      default: 2,
      addition: true,
      doc: 'Share of a processor core that the check may take, in percent.',
    }),
  }),

  identityWatch: section({
    intervalSecs: field(seconds(), {
      default: 6 * HOUR_SECS,
      addition: true,
      doc: 'Time within which the identity of each account is compared with the PLC directory, so that its holder learns of an operation by someone else while it can still be undone (72 hours). 0: not compared.',
    }),
  }),

  appview: section({
    url: field(httpUrl, {
      default: 'https://api.bsky.app',
      doc: 'AppView to which the server forwards `app.bsky` methods that it does not implement.',
    }),
    did: field(serviceId, { default: 'did:web:api.bsky.app#bsky_appview', doc: 'Service id of the AppView.' }),
    cdnUrl: field(httpUrl, {
      default: 'https://cdn.bsky.app',
      doc: 'Image CDN, used in views of records that the AppView has not indexed yet.',
    }),
  }),

  chat: section({
    url: field(httpUrl, { default: 'https://api.bsky.chat', doc: 'Chat service.' }),
    did: field(serviceId, { default: 'did:web:api.bsky.chat#bsky_chat', doc: 'Service id of the chat service.' }),
  }),

  moderation: section({
    did: optional(did, {
      addition: true,
      doc: 'Moderation service whose service tokens authorize the moderation methods among `com.atproto.admin`.',
    }),
    reportUrl: field(httpUrl, {
      default: 'https://mod.bsky.app',
      addition: true,
      doc: 'Service that receives reports which name no other service.',
    }),
    reportDid: field(did, {
      default: 'did:plc:ar7c4by46qjdydhdevvrndac' as Did,
      addition: true,
      doc: 'DID of the service at `report_url`.',
    }),
  }),

  blobHook: section({
    url: optional(httpUrl, {
      addition: true,
      doc: 'URL of a program that checks each new blob before it becomes public. Requires `secret`. See docs/moderation.md.',
    }),
    secret: optional(secret(text), {
      addition: true,
      doc: 'Secret that signs requests to the program (Standard Webhooks): `whsec_` and 24 to 64 bytes in base64.',
    }),
    onFailure: field(choice('closed', 'open'), {
      default: 'closed',
      addition: true,
      doc: 'What happens if the program does not respond: uploads are refused (closed) or accepted (open).',
    }),
    maxBytes: field(bytes({ min: 1 }), {
      default: 2 * MEBIBYTE,
      addition: true,
      doc: 'How many bytes of a blob, from its start, the program gets; at most 8 MiB.',
    }),
    timeoutSecs: field(seconds({ min: 1, max: 25 }), {
      default: 10,
      addition: true,
      doc: 'Longest wait for a response from the program.',
    }),
    parallel: field(integer({ min: 1, max: 64 }), {
      default: 4,
      addition: true,
      doc: 'Blobs that the program checks at the same time.',
    }),
  }),

  cases: section({
    fromReports: field(boolean, {
      default: true,
      addition: true,
      doc: 'Reports about accounts and records of this server that name no service also become cases here. They are still forwarded.',
    }),
    fromLabels: field(boolean, {
      default: true,
      addition: true,
      doc: 'New labels by watched labelers on accounts of this server become cases.',
    }),
    noticeAuthorities: field(listOf(did), {
      default: [],
      addition: true,
      doc: 'Moderation services whose abuse notices (atproto proposal 0012) are accepted at `/v1/abuse-notices`. Empty: the endpoint does not exist.',
    }),
    deadlineSecs: field(seconds({ min: 60 }), {
      default: 7 * DAY_SECS,
      addition: true,
      doc: 'Time within which a case or an appeal has to be decided. Operators are alerted about late ones.',
    }),
    keepSecs: field(seconds(), {
      default: 730 * DAY_SECS,
      addition: true,
      doc: 'Time for which a decided case is kept. 0: forever. The audit log keeps the acts.',
    }),
    quarantineSecs: field(seconds({ min: 60 }), {
      default: 30 * DAY_SECS,
      addition: true,
      doc: 'Duration of a quarantine, unless the decision sets another.',
    }),
    appealSecs: field(seconds({ min: DAY_SECS }), {
      default: 180 * DAY_SECS,
      addition: true,
      doc: 'Time within which an account holder may appeal against a decision.',
    }),
  }),

  spaces: section({
    enabled: field(boolean, {
      default: false,
      addition: true,
      doc: 'Permissioned data: accounts have repositories in spaces, which only apps with access can read. The protocol is a draft (`october-2026`); stored data may be lost when it changes.',
    }),
    maxPerAccount: field(integer({ min: 1, max: 100_000 }), {
      default: 1000,
      addition: true,
      doc: 'Spaces in which an account may have a repository.',
    }),
    maxRecordsPerSpace: field(integer({ min: 1, max: 1_000_000 }), {
      default: 100_000,
      addition: true,
      doc: 'Records that an account may have in a space.',
    }),
    opsKeepSecs: field(seconds({ min: 60 }), {
      default: 7 * DAY_SECS,
      addition: true,
      doc: 'Time for which apps can read the changes of a repository in a space one by one.',
    }),
  }),

  labeler: section({
    watched: field(watchedLabelers, {
      default: [],
      doc: 'Labelers whose labels flag hosted accounts. Each entry has `did` and optionally `labels`, the values that count. The environment variable is a list of DIDs.',
    }),
    pollIntervalSecs: field(seconds({ min: 1 }), { default: 900, doc: 'Time between polls of the labelers.' }),
  }),

  oauth: section({
    accessTokenTtlSecs: field(seconds({ min: 1, max: 1800 }), { default: 900, doc: 'Lifetime of an access token.' }),
    clientJwksCacheTtlSecs: field(seconds(), {
      default: HOUR_SECS,
      doc: 'How long the fetched keys of a client are cached.',
    }),
    clientJwksRefetchCooldownSecs: field(seconds(), {
      default: 30,
      doc: 'Minimum time between two key fetches per client. 0: no limit.',
    }),
  }),

  agentAuth: section({
    serviceAuthEnabled: field(boolean, { default: false, doc: 'Offer registration of agents by service_auth.' }),
    anonymousEnabled: field(boolean, { default: false, doc: 'Offer anonymous registration of agents.' }),
    trustedIssuers: field(trustedIssuers, {
      default: [],
      env: fileOnly,
      doc: 'Identity providers of agents. Each entry has `issuer`, one of `public_key_pem`, `public_keys_pem` and `jwks_url`, and optionally `audience` and `algorithm`.',
    }),
    grantedScopes: field(scopes, { default: agentScopes, env: fileOnly, doc: 'Scopes granted to a registered agent.' }),
    preClaimScopes: field(scopes, {
      default: agentScopes,
      env: fileOnly,
      doc: 'Scopes granted to an agent before an account holder claims it.',
    }),
    verificationUri: field(link, {
      default: derived('`{public_url}/agent/claim`', ({ publicUrl }) => `${publicUrl}/agent/claim`),
      doc: "Page where the owner enters the agent's user code.",
    }),
    assertionTtlSecs: field(seconds({ min: 1 }), { default: HOUR_SECS, doc: 'Lifetime of an identity assertion.' }),
    claimTokenTtlSecs: field(seconds({ min: 1 }), { default: 600, doc: 'Lifetime of a claim token.' }),
    userCodeTtlSecs: field(seconds({ min: 1 }), { default: 600, doc: 'Lifetime of a user code.' }),
    claimSweepIntervalSecs: field(seconds({ min: 1 }), {
      default: 300,
      env: ['SERVICE_AGENT_CLAIM_SWEEP_INTERVAL_SECS'],
      doc: 'Time between passes over expired claims.',
    }),
    authTimeMaxAgeSecs: field(seconds(), {
      default: HOUR_SECS,
      doc: 'Age at which a sign-in at the issuer has to be repeated.',
    }),
    jwksCacheTtlSecs: field(seconds(), {
      default: HOUR_SECS,
      doc: 'How long the fetched keys of an issuer are cached.',
    }),
    jwksRefetchCooldownSecs: field(seconds(), {
      default: 30,
      doc: 'Minimum time between two key fetches per issuer. 0: no limit.',
    }),
  }),

  adminDevices: section({
    nonceSweepIntervalSecs: field(seconds({ min: 1 }), {
      default: HOUR_SECS,
      doc: 'Time between passes that delete old nonces.',
    }),
    nonceMaxAgeSecs: field(seconds({ min: 120, max: 2n ** 63n - 1n }), {
      default: HOUR_SECS,
      doc: 'Age at which a used nonce is deleted.',
    }),
  }),

  console: section({
    enabled: field(boolean, {
      default: true,
      addition: true,
      doc: "Serve the operators' console at `/admin`. Only accounts with a role can sign in there: see docs/console.md.",
    }),
    requiresFactor: field(boolean, {
      default: false,
      addition: true,
      doc: 'Only accounts with a second factor can sign in as operators. Accounts that have one are asked for it in either case.',
    }),
    sessionIdleSecs: field(seconds({ min: 60 }), {
      default: 1800,
      addition: true,
      doc: 'Time without a request after which the session of an operator ends.',
    }),
    sessionSecs: field(seconds({ min: 60 }), {
      default: 8 * HOUR_SECS,
      addition: true,
      doc: 'Time after which the session of an operator ends, however much it is used.',
    }),
    keptFailures: field(integer({ max: 10_000 }), {
      default: 500,
      addition: true,
      doc: 'How many failed requests, and as many refused ones, are kept in memory for `holdfast requests`, by the id in the header `X-Request-Id`, without bodies and parameters. 0: none, and no such header.',
    }),
  }),

  iroh: section({
    enabled: field(boolean, { default: false, doc: 'Run the QUIC endpoint in addition to HTTP.' }),
    ipv6: field(boolean, { default: true, doc: 'Open a socket for IPv6 too.' }),
    discovery: field(boolean, {
      default: true,
      addition: true,
      doc: 'Use the public relays and discovery of the iroh network, through which peers reach each other by node id alone. If false, only known addresses are dialled.',
    }),
    endpoint: optional(text, {
      doc: "Node id to advertise instead of this server's own, even if the endpoint is disabled.",
    }),
  }),

  notifications: section({
    relay: optional(nodeId, { doc: 'Node id of the push relay. Unset: no notifications.' }),
    relayAddresses: field(listOf(socketAddress), {
      default: [],
      addition: true,
      doc: 'Addresses of the push relay, each as `address:port`, in addition to those that discovery finds.',
    }),
    enrollmentCode: optional(secret(text), { doc: 'Code for a relay that requires one to enroll.' }),
  }),

  telemetry: section({
    enabled: field(boolean, { default: false, doc: 'Export traces.' }),
    otlpEndpoint: field(httpUrl, {
      default: 'http://localhost:4317',
      env: ['SERVICE_OTLP_ENDPOINT'],
      doc: 'OTLP endpoint (gRPC).',
    }),
    serviceName: field(text, { default: 'holdfast', env: ['OTEL_SERVICE_NAME'], doc: '`service.name` of the traces.' }),
    metricsEnabled: field(boolean, { default: true, env: ['SERVICE_METRICS_ENABLED'], doc: 'Serve `GET /metrics`.' }),
    metricsRequireAdmin: optional(boolean, {
      env: ['SERVICE_METRICS_REQUIRE_ADMIN'],
      doc: 'Whether `GET /metrics` requires admin authentication: `true` always, `false` never. Unset: only from clients that are neither on this machine nor on a private network, or that use `tls.port`.',
    }),
    logFormat: field(choice('text', 'json'), {
      default: 'text',
      env: ['SERVICE_LOG_FORMAT'],
      doc: 'Format of the log on standard output.',
    }),
    logLevel: field(choice(...logLevels), {
      default: 'info',
      env: ['SERVICE_LOG_LEVEL', 'LOG_LEVEL'],
      addition: true,
      doc: 'Lowest level that is logged.',
    }),
  }),

  email: section(
    {
      provider: field(choice('log', 'smtp', 'mailtrap'), {
        default: 'log',
        doc: 'How mail is sent. `log` writes it to the log instead.',
      }),
      from: optional(emailAddress, { doc: 'Sender address. Required unless the provider is `log`.' }),
      fromName: optional(line, { doc: 'Display name of the sender.' }),
      smtpHost: optional(text, { doc: 'Mail server. Required with `smtp`.' }),
      smtpPort: field(integer({ min: 1, max: 65_535 }), {
        default: derived('587, or 465 with `implicit`', ({ email }) => (email.smtpTls === 'implicit' ? 465 : 587)),
        doc: 'Port of the mail server.',
      }),
      smtpUsername: optional(text, { doc: 'User name at the mail server. Requires `smtp_password`.' }),
      smtpPassword: optional(secret(text), { doc: 'Password at the mail server. Requires `smtp_username`.' }),
      smtpTls: field(choice('starttls', 'implicit', 'none'), {
        default: 'starttls',
        doc: 'Transport security of the connection to the mail server.',
      }),
      smtpTimeoutSecs: field(seconds({ min: 1 }), {
        default: 15,
        doc: 'Longest wait for each response of the mail server; a mail may take four times that long.',
      }),
      httpToken: optional(secret(text), { doc: 'Bearer token. Required with `mailtrap`.' }),
      httpApiUrl: field(httpUrl, {
        default: 'https://send.api.mailtrap.io/api/send',
        doc: 'Address of the `mailtrap` API.',
      }),
      httpTimeoutSecs: field(seconds({ min: 1 }), { default: 15, doc: 'Timeout of a request to `mailtrap`.' }),
    },
    { blankIsUnset: true },
  ),

  alerts: section({
    mailTo: field(listOf(emailAddress), {
      default: [],
      addition: true,
      doc: 'Addresses to which alerts are mailed: once when a condition begins that operators have to act on, and once when it is over. Empty: none. See docs/alerts.md.',
    }),
    webhookUrl: optional(httpUrl, {
      addition: true,
      doc: 'Address to which alerts are posted as JSON. Requires `webhook_secret`.',
    }),
    webhookSecret: optional(secret(text), {
      addition: true,
      doc: 'Secret that signs the posted alerts (Standard Webhooks): `whsec_` and 24 to 64 bytes in base64. Required with `webhook_url`.',
    }),
    reminderSecs: field(seconds(), {
      default: DAY_SECS,
      addition: true,
      doc: 'Time after which a lasting alert is sent again. 0: never.',
    }),
    diskFreeBytes: field(bytes(), {
      default: 2048 * MEBIBYTE,
      addition: true,
      doc: 'Free space at `data_dir` below which the disk counts as nearly full.',
    }),
    signUpsPerHour: field(integer(), {
      default: 50,
      addition: true,
      doc: 'Number of new accounts within an hour that causes an alert. 0: no alert.',
    }),
    refusalsPerHour: field(integer(), {
      default: 10_000,
      addition: true,
      doc: 'Number of requests refused by rate limits within an hour that causes an alert. 0: no alert.',
    }),
  }),

  rateLimit: section({
    enabled: field(boolean, {
      default: true,
      doc: 'Apply rate limits. If false, only the limit on failed sign-ins applies.',
    }),
    globalIpPer5min: perFiveMinutes(3000, 'All endpoints together, except repository exports and the event stream.'),
    createAccountPer5min: perFiveMinutes(100, 'Account creation.'),
    createSessionPer5min: perFiveMinutes(30, 'Session creation.'),
    resetPasswordPer5min: perFiveMinutes(50, 'Password reset.'),
    updateHandlePer5min: perFiveMinutes(10, 'Handle change.'),
    agentClaimConfirmPer5min: perFiveMinutes(30, 'Agent codes: preview, confirmation and the page.'),
    recoveryPer5min: perFiveMinutes(30, 'Recovery: requests for a code and for the escrowed share.'),
    oauthConsentCreatePer5min: perFiveMinutes(
      30,
      'Creation of wallet consent requests, which is also limited per client.',
    ),
    oauthConsentActionPer5min: perFiveMinutes(30, 'Reading or answering a wallet consent request.'),
    transferAcceptPer5min: perFiveMinutes(30, 'Transfer acceptance.'),
    waitlistPer5min: perFiveMinutes(30, 'Waitlist sign-up.'),
    writePointsHourly: field(integer(), {
      default: 5000,
      doc: 'Write points per account and hour. A create costs 3, an update 2, a delete 1, and a commit at least one for each 32 KiB of its event and of the references to blobs that it stores.',
    }),
    writePointsDaily: field(integer(), { default: 35_000, doc: 'Write points per account and day.' }),
  }),
}

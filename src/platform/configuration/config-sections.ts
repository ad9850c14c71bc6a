/** Every configuration key, in the order of the documentation. */
import { logLevels } from '../running/log-line.ts'
import { trustedIssuers } from './trusted-issuers.ts'
import { watchedLabelers } from './watched-labelers.ts'
import { derived, field, fileOnly, optional, required, section, unused } from './config-fields.ts'
import {
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
  scope,
  seconds,
  secret,
  serviceAddress,
  serviceId,
  text,
} from './config-kinds.ts'
import type { Did } from '../../protocol/identifiers.ts'

const MEBIBYTE = 1024 * 1024

/** First labels of hosts that commonly stand beside the handles of a domain. */
const HOST_LABELS = 'about admin api app auth blog cdn did docs email help identitywallet mail ns1 ns2 oauth pds plc relay root smtp static status xrpc'
/** RFC 2142: who writes to such a name at a domain means whoever runs it. */
const MAILBOX_LABELS = 'abuse ftp hostmaster info marketing news noc postmaster sales security support usenet uucp webmaster www'
const reservedHandles = `${HOST_LABELS} ${MAILBOX_LABELS}`.split(' ').toSorted()

const lowerCaseList = mapped(listOf(text), (labels) => [...new Set(labels.map((label) => label.trim().toLowerCase()))].toSorted())

const handleDomains = checked(listOf(handleDomain), (domains) =>
  domains.length === 0 ? [{ at: '', fault: 'needs at least one domain' }] : [],
)

/** Write to the own repository and upload blobs; nothing is deleted, and nothing of the account is managed. */
const agentScopes = ['atproto', 'blob:*/*', 'repo:*?action=create&action=update']

const perFiveMinutes = (limit: number, doc: string) => field(integer(), { default: limit, doc: `${doc} Per client address and 5 minutes.` })

export const declared = {
  bindAddress: field(ipAddress, { default: '0.0.0.0', development: '127.0.0.1', doc: 'Listen address.' }),
  port: field(integer({ max: 65_535 }), {
    default: 8080,
    development: 2583,
    env: ['SERVICE_PORT', 'PORT'],
    doc: 'Listen port. 0 takes any free port.',
  }),
  dataDir: required(path, { development: './data', doc: 'Data directory. Created when it does not exist.' }),
  databaseUrl: field(databaseLocation, {
    default: derived('`{data_dir}/holdfast.db`', ({ dataDir }) => `${dataDir.replace(/\/+$/, '')}/holdfast.db`),
    doc: 'Database location: a path, or a `sqlite:` URL; or a `postgres://` URL, of a database that one server alone uses.',
  }),
  publicUrl: required(originUrl, {
    development: derived('`http://localhost:{port}`', ({ port }) => `http://localhost:${port}`),
    doc: 'Public base address: `https://` and a host, without a path.',
  }),
  serviceName: field(line, { default: 'holdfast', doc: 'Display name of this service, for people.' }),
  serverDid: field(did, {
    default: derived('`did:web:` and the host of `public_url`', ({ publicUrl }) => webDid(publicUrl)),
    doc: 'DID of this service. With a port in `public_url` it names the port, which other services accept of `localhost` alone: atproto knows no other did:web with one.',
  }),
  availableUserDomains: required(handleDomains, { development: ['test'], doc: 'Domains under which handles are served. At least one.' }),
  reservedHandles: field(lowerCaseList, {
    default: reservedHandles,
    doc: 'First labels that nobody may claim under a served domain. A value replaces the list.',
  }),
  blockedHandleWords: field(lowerCaseList, {
    default: [],
    addition: true,
    doc: 'Words that no handle may contain, whatever separators or look-alike digits it hides them behind.',
  }),
  inviteCodeRequired: field(boolean, { default: true, development: false, doc: 'Sign-up needs an invite code.' }),
  adminToken: optional(secret(text), { doc: 'Operator credential. Without it every admin route answers 401.' }),
  signingKeyMasterKey: optional(secret(key32), {
    inFile: 'is safer in the environment than in the file',
    doc: 'Encrypts the keys kept for accounts. Without it a key in `{data_dir}/master.key` does, made at the first start; createCeremony and escrow are not offered then.',
  }),
  plcDirectoryUrl: field<string | null>(httpUrl, {
    default: 'https://plc.directory',
    development: null,
    doc: 'PLC directory. `holdfast dev` runs one of its own inside the process.',
  }),
  development: field(boolean, {
    default: false,
    development: true,
    addition: true,
    doc: 'Allows plain http on localhost and requests to loopback addresses. Never for a public service.',
  }),
  trustedProxies: field(listOf(network), {
    default: [],
    addition: true,
    doc: 'Reverse proxies with public addresses whose `X-Forwarded-For`, or else `Forwarded`, counts. Private and loopback ones always do.',
  }),
  recoveryDidKey: optional(didKey, {
    addition: true,
    doc: 'A did:key placed before the rotation key of the service in every new did:plc identity.',
  }),

  links: section({
    privacyPolicy: optional(link, { env: fileOnly, doc: 'Privacy policy shown in the server description.' }),
    termsOfService: optional(link, { env: fileOnly, doc: 'Terms of service shown in the server description.' }),
  }),

  contact: section({
    email: optional(emailAddress, { env: fileOnly, doc: 'Admin contact shown in the server description.' }),
  }),

  invites: section({
    intervalSecs: field(seconds(), {
      default: 0,
      addition: true,
      doc: 'An account earns one invite code per interval. 0: accounts earn none.',
    }),
    epochSecs: field(seconds(), {
      default: 0,
      addition: true,
      doc: 'Codes are earned for the time after this instant, in seconds since 1970.',
    }),
  }),

  accounts: section({
    passwordOptional: field(boolean, { default: false, doc: 'An account may be created without a password.' }),
    refuseThrowAwayEmail: field(boolean, {
      default: true,
      addition: true,
      doc: 'Refuse email addresses that are given away for minutes, by a list that comes with the program.',
    }),
    deletionReaperIntervalSecs: field(seconds({ min: 1 }), { default: 3600, doc: 'Time between passes that delete accounts that are due.' }),
    ...unused({
      childDeletionGraceSecs: field(seconds(), {
        default: 86_400,
        doc: 'Time from deleting a child account to its purge. 0: the next pass.',
      }),
    }),
  }),

  waitlist: section({
    enabled: field(boolean, { default: false, doc: 'Opens `POST /waitlist`.' }),
  }),

  recovery: section(unused({
    releaseDelaySecs: field(seconds(), {
      default: 86_400,
      doc: 'Time between asking for an escrowed share and receiving it. 0: at once.',
    }),
  })),

  repos: section({
    importsEnabled: field(boolean, { default: true, addition: true, doc: 'Accounts may import a repository.' }),
    maxImportSize: field(bytes({ min: 1 }), { default: 256 * MEBIBYTE, addition: true, doc: 'Largest repository import.' }),
  }),

  blobs: section({
    maxBlobSize: field(bytes({ min: 1 }), { default: 50 * MEBIBYTE, env: fileOnly, doc: 'Largest blob.' }),
    maxStoragePerAccount: field(bytes({ min: 1 }), { default: 1024 * MEBIBYTE, env: fileOnly, doc: 'Blob storage of one account.' }),
    gcIntervalSecs: field(seconds({ min: 1 }), { default: 1800, doc: 'Time between passes of the blob garbage collector.' }),
    tempTtlSecs: field(seconds(), {
      default: 21_600,
      env: fileOnly,
      doc: 'Grace before a blob that no record references is deleted. 0: the next pass.',
    }),
  }),

  blobMirror: section({
    bucket: optional(text, { doc: 'S3-compatible bucket that receives a copy of every blob. Unset: no mirror.' }),
    endpoint: optional(httpUrl, { doc: 'Endpoint of the bucket. Required with `bucket`.' }),
    region: field(text, { default: 'auto', doc: 'Signing region.' }),
    accessKeyId: optional(text, { doc: 'Required with `bucket`.' }),
    secretAccessKey: optional(secret(text), { doc: 'Required with `bucket`.' }),
    forcePathStyle: field(boolean, { default: false, doc: 'Addresses the bucket as `{endpoint}/{bucket}` instead of by host name.' }),
    keyPrefix: field(text, { default: 'blobs/', doc: 'Object keys under this prefix belong to the mirror alone.' }),
    syncIntervalSecs: field(seconds({ min: 1 }), { default: 300, doc: 'Time between mirror passes.' }),
  }),

  blobScrub: section({
    autoHeal: field(boolean, { default: true, doc: 'Replaces a bad blob file by a verified copy from the mirror.' }),
    intervalSecs: field(seconds({ min: 1 }), { default: 21_600, doc: 'Time between passes that hash every stored blob again.' }),
  }),

  backup: section({
    destination: optional(text, {
      addition: true,
      doc: 'Where backups go: a folder, or `s3://bucket/prefix` in the store that `blob_mirror.endpoint` and its keys name.',
    }),
    intervalSecs: field(seconds(), { default: 0, addition: true, doc: 'Time between scheduled backups. 0: none are scheduled.' }),
    keep: field(integer({ min: 1 }), { default: 7, addition: true, doc: 'Scheduled backups that are kept.' }),
    passphrase: optional(secret(text), { addition: true, doc: 'Encrypts backups (age format). Without it they are as readable as the data directory.' }),
  }),

  firehose: section({
    gcIntervalSecs: field(seconds({ min: 1 }), { default: 3600, doc: 'Time between retention passes over the event log.' }),
    logRetentionSecs: field(seconds(), { default: 604_800, env: fileOnly, doc: 'Older events may be pruned. 0: age does not matter.' }),
    logRetentionCount: field(integer(), {
      default: 0,
      env: fileOnly,
      doc: 'Events kept at most. 0: the count does not matter.',
    }),
    maxSubscribers: field(integer(), { default: 500, addition: true, doc: 'Subscribers of the event stream at a time. 0: any number.' }),
    maxSubscribersPerAddress: field(integer(), { default: 10, addition: true, doc: 'The same, of one client address. 0, or without `rate_limit.enabled`: any number.' }),
    stalledSecs: field(seconds({ min: 1, max: 86_400 }), {
      default: 120,
      addition: true,
      doc: 'Idle limit for a subscriber whose buffer is full: one that reads nothing for this long is disconnected, even if it answers pings.',
    }),
  }),

  crawlers: section({
    urls: field(listOf(serviceAddress), {
      default: ['https://bsky.network'],
      development: [],
      env: ['SERVICE_CRAWLERS'],
      doc: 'Relays told about new content. Empty: none.',
    }),
  }),

  appview: section({
    url: field(httpUrl, { default: 'https://api.bsky.app', doc: 'AppView that answers social methods not served here.' }),
    did: field(serviceId, { default: 'did:web:api.bsky.app#bsky_appview', doc: 'Service id of the AppView.' }),
    cdnUrl: field(httpUrl, { default: 'https://cdn.bsky.app', doc: 'Image CDN, for records not yet indexed.' }),
  }),

  chat: section({
    url: field(httpUrl, { default: 'https://api.bsky.chat', doc: 'Chat service.' }),
    did: field(serviceId, { default: 'did:web:api.bsky.chat#bsky_chat', doc: 'Service id of the chat service.' }),
  }),

  moderation: section({
    did: optional(did, { addition: true, doc: 'Moderation service whose tokens the admin methods of moderators accept.' }),
    reportUrl: field(httpUrl, {
      default: 'https://mod.bsky.app',
      addition: true,
      doc: 'Receives reports that name no other service.',
    }),
    reportDid: field(did, {
      default: 'did:plc:ar7c4by46qjdydhdevvrndac' as Did,
      addition: true,
      doc: 'DID of the service that receives reports.',
    }),
  }),

  labeler: section({
    watched: field(watchedLabelers, {
      default: [],
      doc: 'Labelers whose account labels flag hosted accounts: `did`, and perhaps `labels`. The variable lists DIDs.',
    }),
    pollIntervalSecs: field(seconds({ min: 1 }), { default: 900, doc: 'Time between polls of the labelers.' }),
  }),

  oauth: section({
    accessTokenTtlSecs: field(seconds({ min: 1, max: 1800 }), { default: 900, doc: 'Lifetime of an access token.' }),
    clientJwksCacheTtlSecs: field(seconds(), { default: 3600, doc: 'How long the fetched keys of a client are kept.' }),
    clientJwksRefetchCooldownSecs: field(seconds(), { default: 30, doc: 'Least time between two fetches per client. 0: no limit.' }),
  }),

  agentAuth: section(unused({
    serviceAuthEnabled: field(boolean, { default: false, doc: 'Opens the service_auth registration of agents.' }),
    anonymousEnabled: field(boolean, { default: false, doc: 'Opens the anonymous registration of agents.' }),
    trustedIssuers: field(trustedIssuers, {
      default: [],
      env: fileOnly,
      doc: 'Identity providers of agents: `issuer`, one of `public_key_pem`, `public_keys_pem` or `jwks_url`, and perhaps `audience` and `algorithm`.',
    }),
    grantedScopes: field(listOf(scope), { default: agentScopes, env: fileOnly, doc: 'Scopes of a registered agent.' }),
    preClaimScopes: field(listOf(scope), { default: agentScopes, env: fileOnly, doc: 'Scopes of an agent that nobody has claimed yet.' }),
    verificationUri: field(link, {
      default: derived('`{public_url}/agent/claim`', ({ publicUrl }) => `${publicUrl}/agent/claim`),
      doc: 'Page on which the owner enters the code of an agent.',
    }),
    assertionTtlSecs: field(seconds({ min: 1 }), { default: 3600, doc: 'Lifetime of an identity assertion.' }),
    claimTokenTtlSecs: field(seconds({ min: 1 }), { default: 600, doc: 'Lifetime of a claim token.' }),
    userCodeTtlSecs: field(seconds({ min: 1 }), { default: 600, doc: 'Lifetime of a user code.' }),
    authTimeMaxAgeSecs: field(seconds(), { default: 3600, doc: 'An older sign-in at the issuer has to be repeated.' }),
    claimSweepIntervalSecs: field(seconds({ min: 1 }), {
      default: 300,
      env: ['SERVICE_AGENT_CLAIM_SWEEP_INTERVAL_SECS'],
      doc: 'Time between passes over expired claims.',
    }),
    jwksCacheTtlSecs: field(seconds(), { default: 3600, doc: 'How long the fetched keys of an issuer are trusted.' }),
    jwksRefetchCooldownSecs: field(seconds(), { default: 30, doc: 'Least time between two fetches per issuer. 0: no limit.' }),
  })),

  adminDevices: section({
    nonceSweepIntervalSecs: field(seconds({ min: 1 }), { default: 3600, doc: 'Time between passes over used nonces.' }),
    nonceMaxAgeSecs: field(seconds({ min: 120, max: 2n ** 63n - 1n }), { default: 3600, doc: 'Age at which a used nonce is forgotten.' }),
  }),

  iroh: section(unused({
    enabled: field(boolean, { default: false, doc: 'Runs the QUIC endpoint beside HTTP.' }),
    endpoint: optional(text, { doc: 'Node id to advertise instead of the own one, even when the endpoint is off.' }),
    ipv6: field(boolean, { default: true, doc: 'Binds the IPv6 socket too.' }),
  })),

  notifications: section(unused({
    relay: optional(nodeId, { doc: 'Node id of the push relay. Unset: no notifications.' }),
    enrollmentCode: optional(secret(text), { doc: 'Code for a relay that gates enrollment.' }),
  })),

  telemetry: section({
    enabled: field(boolean, { default: false, doc: 'Exports traces.' }),
    otlpEndpoint: field(httpUrl, { default: 'http://localhost:4317', env: ['SERVICE_OTLP_ENDPOINT'], doc: 'OTLP endpoint (gRPC).' }),
    serviceName: field(text, { default: 'holdfast', env: ['OTEL_SERVICE_NAME'], doc: '`service.name` of the traces.' }),
    metricsEnabled: field(boolean, { default: true, env: ['SERVICE_METRICS_ENABLED'], doc: 'Serves `GET /metrics`.' }),
    metricsRequireAdmin: optional(boolean, {
      env: ['SERVICE_METRICS_REQUIRE_ADMIN'],
      doc: '`GET /metrics` needs admin authentication: `true` always, `false` never. Unset: for clients that are neither on this machine nor in a private network.',
    }),
    logFormat: field(choice('text', 'json'), { default: 'text', env: ['SERVICE_LOG_FORMAT'], doc: 'Form of the log on standard output.' }),
    logLevel: field(choice(...logLevels), {
      default: 'info',
      env: ['SERVICE_LOG_LEVEL', 'LOG_LEVEL'],
      addition: true,
      doc: 'Least level that is logged.',
    }),
  }),

  email: section(
    {
      provider: field(choice('log', 'smtp', 'mailtrap'), { default: 'log', doc: '`log` writes mail to the log instead of sending it.' }),
      from: optional(emailAddress, { doc: 'Sender. Required unless the provider is `log`.' }),
      fromName: optional(line, { doc: 'Display name of the sender.' }),
      smtpHost: optional(text, { doc: 'Required with `smtp`.' }),
      smtpPort: field(integer({ min: 1, max: 65_535 }), {
        default: derived('587, or 465 with `implicit`', ({ email }) => (email.smtpTls === 'implicit' ? 465 : 587)),
        doc: 'Port of the mail server.',
      }),
      smtpUsername: optional(text, { doc: 'With a password, the sender authenticates.' }),
      smtpPassword: optional(secret(text), { doc: 'Password of the mail server.' }),
      smtpTls: field(choice('starttls', 'implicit', 'none'), { default: 'starttls', doc: 'Transport security.' }),
      smtpTimeoutSecs: field(seconds({ min: 1 }), { default: 15, doc: 'Time to connect and send.' }),
      httpToken: optional(secret(text), { doc: 'Bearer token. Required with `mailtrap`.' }),
      httpApiUrl: field(httpUrl, { default: 'https://send.api.mailtrap.io/api/send', doc: 'Where `mailtrap` sends.' }),
      httpTimeoutSecs: field(seconds({ min: 1 }), { default: 15, doc: 'Time for a request of `mailtrap`.' }),
    },
    { blankIsUnset: true },
  ),

  rateLimit: section({
    enabled: field(boolean, { default: true, doc: 'Off: no limit applies, except the one on failed sign-ins.' }),
    globalIpPer5min: perFiveMinutes(3000, 'All requests but repository exports and the event stream.'),
    createAccountPer5min: perFiveMinutes(100, 'Account creation.'),
    createSessionPer5min: perFiveMinutes(30, 'Session creation.'),
    resetPasswordPer5min: perFiveMinutes(50, 'Password reset.'),
    updateHandlePer5min: perFiveMinutes(10, 'Handle change.'),
    ...unused({
      transferAcceptPer5min: perFiveMinutes(30, 'Accepting a transfer.'),
      agentClaimConfirmPer5min: perFiveMinutes(30, 'Confirming the claim of an agent.'),
      recoveryPer5min: perFiveMinutes(30, 'Recovery.'),
      oauthConsentCreatePer5min: perFiveMinutes(30, 'Asking for consent in the wallet, also per client.'),
      oauthConsentActionPer5min: perFiveMinutes(30, 'Reading and answering a consent request.'),
    }),
    waitlistPer5min: perFiveMinutes(30, 'Joining the waitlist.'),
    writePointsHourly: field(integer(), { default: 5000, doc: 'Write points per account and hour: create 3, update 2, delete 1.' }),
    writePointsDaily: field(integer(), { default: 35_000, doc: 'Write points per account and day.' }),
  }),
}

/** The did:web of a public address: `did:web:<host>`, a port as `%3A<port>`. */
function webDid(publicUrl: string): Did {
  return `did:web:${encodeURIComponent(new URL(publicUrl).host)}` as Did
}

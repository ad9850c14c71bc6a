/** Checks that involve several keys. Each reports on one key, and is skipped if that key already has a fault. */
import { parseBucketPlace } from '../../base/bucket-place.ts'
import { isIPv4 } from 'node:net'
import type { Config, Mode } from './config.ts'
import type { Secret } from '../../base/secret.ts'
import { hasIroh, NO_IROH } from '../network/iroh-library.ts'
import { parseWebhookSecret } from '../../protocol/webhook-signature.ts'

export interface Check {
  key: string
  /** A fault prevents the start; a warning is only logged. */
  level: 'fault' | 'warning'
  find(config: Config, mode: Mode): string | null
}

const fault = (key: string, find: Check['find']): Check => ({ key, level: 'fault', find })
const warning = (key: string, find: Check['find']): Check => ({ key, level: 'warning', find })
const requiredWhen = (key: string, why: string, missing: (config: Config) => boolean): Check =>
  fault(key, (config) => (missing(config) ? `required ${why}` : null))

const MIN_ADMIN_TOKEN_LENGTH = 32

/** Scopes that let an agent do what only the account's owner should. */
const broadScope = /^(?:account:|identity:|transition:generic$|com\.atproto\.access$|rpc:\*)/

const broadScopes = (scopes: readonly string[]): string | null => {
  const broad = scopes.filter((scope) => broadScope.test(scope))
  return broad.length > 0 ? `${broad.join(', ')} gives agents the account owner's full access` : null
}

const loopbackHost = /^(?:localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

/** Expects a hostname from `URL`, which writes every IPv4 notation in dotted form and IPv6 in brackets. */
const isAddress = (hostname: string): boolean => hostname.startsWith('[') || isIPv4(hostname)

const MAX_HOOK_BYTES = 8 * 1024 ** 2

const webhookSecretFault = (secret: Secret<string> | null): string | null =>
  secret !== null && parseWebhookSecret(secret.reveal()) === null
    ? 'must be whsec_ and 24 to 64 bytes in base64, such as the output of: echo whsec_$(openssl rand -base64 32)'
    : null

const MAX_ALERT_ADDRESSES = 10

/** Rules that all S3-compatible stores share. */
const bucketName = /^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$/i
const keyPrefix = /^(?:[\w.-]+\/)*$/
/** Most bytes that a store copies in one request. */
const MAX_COPIED_BYTES = 5 * 1024 ** 3
const s3KeyNames = {
  s3Bucket: 'blobs.s3_bucket',
  s3Endpoint: 'blobs.s3_endpoint',
  s3AccessKeyId: 'blobs.s3_access_key_id',
  s3SecretAccessKey: 'blobs.s3_secret_access_key',
} as const

const MAX_FORMER_URLS = 8

/** Three attempts to renew the lease have to fit into this time. */
const MIN_TAKEOVER_SECS = 3

export const checks: readonly Check[] = [
  warning('backup.continuous_promise', ({ backup, blobs, blobMirror }) =>
    backup.continuous !== null &&
    backup.continuousPromise === 'sync' &&
    blobs.store === 'folder' &&
    blobMirror.bucket === null
      ? 'does not cover blobs: set blob_mirror.bucket, or blobs.store = "s3"'
      : null,
  ),
  fault('backup.takeover_secs', ({ backup }) => {
    if (backup.takeoverSecs === 0) return null
    if (backup.takeoverSecs < MIN_TAKEOVER_SECS) return `must be 0, or at least ${MIN_TAKEOVER_SECS}`
    return backup.continuous === null || backup.continuousPromise === 'async'
      ? 'needs backup.continuous, and backup.continuous_promise = "sync"'
      : null
  }),
  fault('former_urls', ({ publicUrl, formerUrls }) => {
    if (formerUrls.includes(publicUrl)) return 'must not contain public_url'
    return formerUrls.length > MAX_FORMER_URLS ? `may have at most ${MAX_FORMER_URLS} addresses` : null
  }),
  fault('public_url', ({ publicUrl, development }) => {
    const url = new URL(publicUrl)
    if (url.port === '0') return 'must be set when the port is 0'
    if (isAddress(url.hostname) && !(development && loopbackHost.test(url.hostname)))
      return 'must have a host name: an IP address can be part of neither a DID nor a handle'
    if (url.protocol === 'https:') return null
    return development && loopbackHost.test(url.hostname) ? null : 'must start with https://'
  }),
  ...(
    [
      ['endpoint', 'endpoint'],
      ['access_key_id', 'accessKeyId'],
      ['secret_access_key', 'secretAccessKey'],
    ] as const
  ).map(([key, name]) =>
    requiredWhen(
      `blob_mirror.${key}`,
      'when blob_mirror.bucket is set',
      ({ blobMirror }) => blobMirror.bucket !== null && blobMirror[name] === null,
    ),
  ),
  ...(['s3Bucket', 's3Endpoint', 's3AccessKeyId', 's3SecretAccessKey'] as const).map((name) =>
    requiredWhen(
      s3KeyNames[name],
      'when blobs.store is s3',
      ({ blobs }) => blobs.store === 's3' && blobs[name] === null,
    ),
  ),
  fault('signup.question', ({ signup }) =>
    signup.question !== null && signup.answers.length === 0
      ? 'needs answers that are accepted: set signup.answers first'
      : null,
  ),
  fault('blobs.s3_bucket', ({ blobs }) =>
    blobs.s3Bucket !== null && !bucketName.test(blobs.s3Bucket)
      ? 'is not the name of a bucket: its endpoint and prefix are other keys'
      : null,
  ),
  fault('blobs.s3_key_prefix', ({ blobs }) =>
    keyPrefix.test(blobs.s3KeyPrefix) ? null : 'must consist of names that each end in a slash, such as blobs/',
  ),
  fault('blobs.max_blob_size', ({ blobs }) =>
    blobs.store === 's3' && blobs.maxBlobSize > MAX_COPIED_BYTES
      ? 'is above 5 GiB, which a bucket cannot copy in one request'
      : null,
  ),
  fault('blobs.s3_key_prefix', ({ blobs, blobMirror, backup }) => {
    if (blobs.store !== 's3' || blobs.s3Endpoint !== blobMirror.endpoint) return null
    const destination = parseBucketPlace(backup.destination ?? '')
    if (destination === null) return null
    const { bucket, prefix } = destination
    const overlaps = prefix.startsWith(blobs.s3KeyPrefix) || blobs.s3KeyPrefix.startsWith(prefix)
    return bucket === blobs.s3Bucket && overlaps
      ? 'must hold nothing but blobs, and backup.destination overlaps with it'
      : null
  }),
  warning('blobs.s3_bucket', ({ blobs }) =>
    blobs.store === 'folder' && blobs.s3Bucket !== null ? 'has no effect unless blobs.store is s3' : null,
  ),
  warning('backup.bucket_blobs', ({ blobs, backup }) =>
    blobs.store === 'folder' && backup.bucketBlobs
      ? 'has no effect unless blobs.store is s3: blobs in the data directory are always part of backups'
      : null,
  ),
  warning('blob_mirror.bucket', ({ blobs, blobMirror }) =>
    blobs.store === 's3' && blobMirror.bucket !== null
      ? 'has no effect: the blobs themselves are in a bucket (blobs.store is s3), and nothing is mirrored or restored at start'
      : null,
  ),
  requiredWhen(
    'tls.certificate_files',
    'when tls.mode is files',
    ({ tls }) => tls.mode === 'files' && tls.certificateFiles.length === 0,
  ),
  fault('tls.key_files', ({ tls }) =>
    tls.mode === 'files' && tls.keyFiles.length !== tls.certificateFiles.length
      ? `must name as many files as tls.certificate_files, which has ${tls.certificateFiles.length}`
      : null,
  ),
  fault('tls.http_port', ({ tls }) => {
    if (tls.mode === 'off') return null
    if (tls.httpPort === tls.port) return 'must differ from tls.port'
    return tls.mode === 'acme' && tls.acmeChallenge === 'http-01' && tls.httpPort === 0
      ? 'must not be 0 when tls.acme_challenge is http-01, which asks it'
      : null
  }),
  fault('tls.port', ({ tls, port }) =>
    tls.mode !== 'off' && [tls.port, tls.httpPort].includes(port)
      ? 'must differ from port, as must tls.http_port'
      : null,
  ),
  fault('tls.mode', ({ tls, publicUrl }) =>
    tls.mode !== 'off' && !publicUrl.startsWith('https:') ? 'must be off, because public_url is not https' : null,
  ),
  fault('tls.acme_directory_url', ({ tls }) =>
    tls.mode === 'acme' && !tls.acmeDirectoryUrl.startsWith('https:') ? 'must start with https://' : null,
  ),
  requiredWhen(
    'email.from',
    'unless email.provider is log',
    ({ email }) => email.provider !== 'log' && email.from === null,
  ),
  requiredWhen(
    'email.smtp_host',
    'when email.provider is smtp',
    ({ email }) => email.provider === 'smtp' && email.smtpHost === null,
  ),
  requiredWhen(
    'email.http_token',
    'when email.provider is mailtrap',
    ({ email }) => email.provider === 'mailtrap' && email.httpToken === null,
  ),
  requiredWhen(
    'email.smtp_username',
    'with email.smtp_password',
    ({ email }) => email.smtpPassword !== null && email.smtpUsername === null,
  ),
  requiredWhen(
    'email.smtp_password',
    'with email.smtp_username',
    ({ email }) => email.smtpUsername !== null && email.smtpPassword === null,
  ),
  fault('email.smtp_tls', ({ email }) =>
    email.smtpTls === 'none' && (email.smtpUsername !== null || email.smtpPassword !== null)
      ? 'none would send the user name and password in the clear'
      : null,
  ),
  fault('alerts.mail_to', ({ alerts }) =>
    alerts.mailTo.length > MAX_ALERT_ADDRESSES ? `has more than ${MAX_ALERT_ADDRESSES} addresses` : null,
  ),
  requiredWhen(
    'alerts.webhook_secret',
    'with alerts.webhook_url',
    ({ alerts }) => alerts.webhookUrl !== null && alerts.webhookSecret === null,
  ),
  fault('alerts.webhook_secret', ({ alerts }) => webhookSecretFault(alerts.webhookSecret)),
  requiredWhen(
    'blob_hook.secret',
    'with blob_hook.url',
    ({ blobHook }) => blobHook.url !== null && blobHook.secret === null,
  ),
  fault('cases.keep_secs', ({ cases }) =>
    cases.keepSecs !== 0 && cases.keepSecs < cases.appealSecs
      ? 'must not be shorter than cases.appeal_secs: the person may appeal until then'
      : null,
  ),
  fault('blob_hook.secret', ({ blobHook }) => webhookSecretFault(blobHook.secret)),
  fault('blob_hook.max_bytes', ({ blobHook }) =>
    blobHook.maxBytes > MAX_HOOK_BYTES ? `must be at most ${MAX_HOOK_BYTES}` : null,
  ),
  fault('iroh.enabled', ({ iroh }) => (iroh.enabled && !hasIroh ? `must be false here: ${NO_IROH}` : null)),
  fault('notifications.relay', ({ notifications, iroh }) =>
    notifications.relay !== null && !iroh.enabled ? 'requires iroh.enabled' : null,
  ),

  fault('agent_auth.trusted_issuers', ({ agentAuth, publicUrl }) =>
    agentAuth.trustedIssuers.some(({ issuer }) => issuer === publicUrl)
      ? 'must not name this server, which is not an identity provider'
      : null,
  ),

  warning('admin_token', ({ adminToken, inviteCodeRequired }) =>
    adminToken === null && inviteCodeRequired
      ? 'is not set, but sign-up requires invite codes, which only an operator can create: set it, or set invite_code_required to false'
      : null,
  ),
  warning('admin_token', ({ adminToken }) =>
    adminToken !== null && adminToken.reveal().length < MIN_ADMIN_TOKEN_LENGTH
      ? `is shorter than ${MIN_ADMIN_TOKEN_LENGTH} characters`
      : null,
  ),
  warning('email.provider', ({ email }, mode) =>
    mode === 'serve' && email.provider === 'log' ? 'is log, so mail is written to the log and not delivered' : null,
  ),
  warning('development', ({ development }, mode) =>
    mode === 'serve' && development ? 'is true, which is never safe on a public service' : null,
  ),
  warning('signing_key_master_key', ({ notifications, signingKeyMasterKey }) =>
    notifications.relay !== null && signingKeyMasterKey === null
      ? 'is not set, so no push notification can be sealed: devices that expect content get none'
      : null,
  ),
  warning('agent_auth.jwks_refetch_cooldown_secs', ({ agentAuth }) =>
    agentAuth.jwksRefetchCooldownSecs >= agentAuth.jwksCacheTtlSecs
      ? 'should be below agent_auth.jwks_cache_ttl_secs'
      : null,
  ),
  warning('oauth.client_jwks_refetch_cooldown_secs', ({ oauth }) =>
    oauth.clientJwksRefetchCooldownSecs >= oauth.clientJwksCacheTtlSecs
      ? 'should be below oauth.client_jwks_cache_ttl_secs'
      : null,
  ),
  warning('agent_auth.granted_scopes', ({ agentAuth }) => broadScopes(agentAuth.grantedScopes)),
  warning('agent_auth.pre_claim_scopes', ({ agentAuth }) => broadScopes(agentAuth.preClaimScopes)),
]

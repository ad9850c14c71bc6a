/**
 * The environment of the reference PDS (`PDS_*`), and what each variable means here. One table, in the order in which
 * the reference reads them: the key of this server and how to write the value there, or why there is none.
 */
import { parseVariables } from '../../../platform/configuration/variables-file.ts'

/** By name, as in the file or the process. An empty value counts as none, as in the reference. */
export type ReferenceEnv = Readonly<Record<string, string | undefined>>

/** A value of our configuration, as TOML can write it. */
export type Setting = string | number | boolean | readonly string[]

/** Returns the settings that a value becomes here, by key with its section; null if the value means nothing here. */
type Counterpart = (text: string) => Record<string, Setting> | null

/** `isSettled`: the operator need not think about it, so reports leave it out. */
type Meaning = Counterpart | { why: string; isSettled?: true }

const asText = (text: string): string => text
const asFlag = (text: string): boolean => text === 'true' || text === '1'
const asNumber = (text: string): number | null => (/^\d{1,15}$/.test(text) ? Number(text) : null)
const asList = (text: string): string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
const toSecs = (text: string): number | null => (asNumber(text) === null ? null : Math.round(asNumber(text)! / 1000))

const to =
  (key: string, read: (text: string) => Setting | null = asText): Counterpart =>
  (text) => {
    const value = read(text)
    return value === null ? null : { [key]: value }
  }
const none = (why: string): Meaning => ({ why })
const settled = (why: string): Meaning => ({ why, isSettled: true })

/** A server at `localhost` is for development, and its address follows from its port. */
const address: Counterpart = (host) =>
  Object.fromEntries(host === 'localhost' ? [] : [['public_url', `https://${host}`]])

/** Returns the settings of `smtps://user:password@host:port` and its variants; null for any other text. */
export function mailServer(text: string): Record<string, Setting> | null {
  const url = URL.parse(text)
  if (url === null || !/^smtps?:$/.test(url.protocol) || url.hostname === '') return null
  const isImplicit = url.protocol === 'smtps:' || url.port === '465'
  const [user, password] = [decoded(url.username), decoded(url.password)]
  if (user === null || password === null) return null
  const optional = { 'email.smtp_username': user, 'email.smtp_password': password }
  return {
    'email.provider': 'smtp',
    'email.smtp_host': url.hostname,
    'email.smtp_port': Number(url.port) || (isImplicit ? 465 : 587),
    'email.smtp_tls': isImplicit ? 'implicit' : 'starttls',
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== '')),
  }
}

/** Decodes a part of a URL; null if it is malformed. */
function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch (error) {
    if (error instanceof URIError) return null
    throw error
  }
}

const BUILT_IN = 'built in: there is nothing to set'
const IMPORTED = 'taken over by "holdfast import-reference"'
const ONE_DATABASE = 'one database holds everything: see database_url'
const PLAIN_PAGES = 'pages have one design'
const NO_CAPTCHA = 'there is no captcha: use invites or the waitlist'
const NO_ENTRYWAY = 'accounts behind an entryway cannot move: it holds their passwords'
const OWN_BOUNDS = 'requests to other services have fixed bounds'
const NO_REDIS = 'rate limits of several servers are shared in the database'

export const referenceVariables: Readonly<Record<string, Meaning>> = {
  PDS_PORT: to('port', asNumber),
  PDS_HOSTNAME: address,
  PDS_SERVICE_DID: to('server_did'),
  PDS_SERVICE_NAME: to('service_name'),
  PDS_VERSION: settled('the version of this program is its own'),
  PDS_HOME_URL: none('the landing page is at public_url'),
  PDS_LOGO_URL: none(PLAIN_PAGES),
  PDS_PRIVACY_POLICY_URL: to('links.privacy_policy'),
  PDS_SUPPORT_URL: none('pages name contact.email instead'),
  PDS_TERMS_OF_SERVICE_URL: to('links.terms_of_service'),
  PDS_CONTACT_EMAIL_ADDRESS: to('contact.email'),
  PDS_ACCEPTING_REPO_IMPORTS: to('repos.imports_enabled', asFlag),
  PDS_MAX_REPO_IMPORT_SIZE: to('repos.max_import_size', asNumber),
  PDS_BLOB_UPLOAD_LIMIT: to('blobs.max_blob_size', asNumber),
  PDS_DEV_MODE: none('use "holdfast dev" for development'),
  PDS_HCAPTCHA_SITE_KEY: none(NO_CAPTCHA),
  PDS_HCAPTCHA_SECRET_KEY: none(NO_CAPTCHA),
  PDS_HCAPTCHA_TOKEN_SALT: none(NO_CAPTCHA),
  PDS_OAUTH_TRUSTED_CLIENTS: none('all apps are asked the same'),
  PDS_PRIMARY_COLOR: none(PLAIN_PAGES),
  PDS_ERROR_COLOR: none(PLAIN_PAGES),
  PDS_WARNING_COLOR: none(PLAIN_PAGES),
  PDS_INFO_COLOR: none(PLAIN_PAGES),
  PDS_SUCCESS_COLOR: none(PLAIN_PAGES),
  PDS_BACKGROUND_LIGHT_URL: none(PLAIN_PAGES),
  PDS_BACKGROUND_DARK_URL: none(PLAIN_PAGES),
  PDS_DATA_DIRECTORY: settled('the old folder stays as it is: choose another data_dir'),
  PDS_SQLITE_DISABLE_WAL_AUTO_CHECKPOINT: settled(BUILT_IN),
  PDS_ACCOUNT_DB_LOCATION: settled(ONE_DATABASE),
  PDS_SEQUENCER_DB_LOCATION: settled(ONE_DATABASE),
  PDS_DID_CACHE_DB_LOCATION: settled(ONE_DATABASE),
  PDS_ACTOR_STORE_DIRECTORY: settled(ONE_DATABASE),
  PDS_ACTOR_STORE_CACHE_SIZE: settled(ONE_DATABASE),
  PDS_BLOBSTORE_S3_BUCKET: settled('the old bucket stays as it is: choose where blobs go with blobs.store'),
  PDS_BLOBSTORE_S3_REGION: settled('see PDS_BLOBSTORE_S3_BUCKET'),
  PDS_BLOBSTORE_S3_ENDPOINT: settled('see PDS_BLOBSTORE_S3_BUCKET'),
  PDS_BLOBSTORE_S3_FORCE_PATH_STYLE: settled('see PDS_BLOBSTORE_S3_BUCKET'),
  PDS_BLOBSTORE_S3_ACCESS_KEY_ID: settled('see PDS_BLOBSTORE_S3_BUCKET'),
  PDS_BLOBSTORE_S3_SECRET_ACCESS_KEY: settled('see PDS_BLOBSTORE_S3_BUCKET'),
  PDS_BLOBSTORE_S3_UPLOAD_TIMEOUT_MS: settled(BUILT_IN),
  PDS_BLOBSTORE_S3_REQUEST_TIMEOUT_MS: settled(BUILT_IN),
  PDS_BLOBSTORE_DISK_LOCATION: settled('blobs are in data_dir'),
  PDS_BLOBSTORE_DISK_TMP_LOCATION: settled('blobs are in data_dir'),
  PDS_DID_PLC_URL: to('plc_directory_url'),
  PDS_DID_CACHE_STALE_TTL: settled(BUILT_IN),
  PDS_DID_CACHE_MAX_TTL: settled(BUILT_IN),
  PDS_ID_RESOLVER_TIMEOUT: settled(BUILT_IN),
  PDS_RECOVERY_DID_KEY: to('recovery_did_key'),
  PDS_SERVICE_HANDLE_DOMAINS: to('available_user_domains', (text) =>
    asList(text).map((domain) => domain.replace(/^\./, '')),
  ),
  PDS_HANDLE_BACKUP_NAMESERVERS: none('names are looked up with the name servers of the machine'),
  PDS_ENABLE_DID_DOC_WITH_SESSION: settled(BUILT_IN),
  PDS_ENTRYWAY_URL: none(NO_ENTRYWAY),
  PDS_ENTRYWAY_DID: none(NO_ENTRYWAY),
  PDS_ENTRYWAY_JWT_VERIFY_KEY_K256_PUBLIC_KEY_HEX: none(NO_ENTRYWAY),
  PDS_ENTRYWAY_PLC_ROTATION_KEY: none(NO_ENTRYWAY),
  PDS_INVITE_REQUIRED: to('invite_code_required', asFlag),
  PDS_INVITE_INTERVAL: to('invites.interval_secs', toSecs),
  PDS_INVITE_EPOCH: to('invites.epoch_secs', toSecs),
  PDS_EMAIL_SMTP_URL: mailServer,
  PDS_EMAIL_FROM_ADDRESS: to('email.from'),
  PDS_EMAIL_DISABLE_CONFIRMATION_LINK: none('mails contain codes, and no links that confirm'),
  PDS_MODERATION_EMAIL_SMTP_URL: none('operators do not send mail to account holders'),
  PDS_MODERATION_EMAIL_ADDRESS: none('operators do not send mail to account holders'),
  PDS_MAX_SUBSCRIPTION_BUFFER: settled(BUILT_IN),
  PDS_REPO_BACKFILL_LIMIT_MS: to('firehose.log_retention_secs', toSecs),
  PDS_BSKY_APP_VIEW_URL: to('appview.url'),
  PDS_BSKY_APP_VIEW_DID: to('appview.did', (did) => `${did}#bsky_appview`),
  PDS_BSKY_APP_VIEW_CDN_URL_PATTERN: none('see appview.cdn_url, which is an address and not a pattern'),
  PDS_MOD_SERVICE_URL: none('see moderation.report_url'),
  PDS_MOD_SERVICE_DID: to('moderation.did'),
  PDS_REPORT_SERVICE_URL: to('moderation.report_url'),
  PDS_REPORT_SERVICE_DID: to('moderation.report_did'),
  PDS_RATE_LIMITS_ENABLED: to('rate_limit.enabled', asFlag),
  PDS_RATE_LIMIT_BYPASS_KEY: none('no key lifts rate limits'),
  PDS_RATE_LIMIT_BYPASS_IPS: none('no address is free of rate limits; for proxies see trusted_proxies'),
  PDS_REDIS_SCRATCH_ADDRESS: none(NO_REDIS),
  PDS_REDIS_SCRATCH_PASSWORD: none(NO_REDIS),
  PDS_CRAWLERS: to('crawlers.urls', asList),
  PDS_DPOP_SECRET: settled('nonces have another secret: apps get one with their next request'),
  PDS_JWT_SECRET: settled(IMPORTED),
  PDS_ADMIN_PASSWORD: to('admin_token'),
  PDS_ENTRYWAY_ADMIN_TOKEN: none(NO_ENTRYWAY),
  PDS_PLC_ROTATION_KEY_KMS_KEY_ID: none('a key in a KMS cannot be taken over: see docs/moving-in.md'),
  PDS_PLC_ROTATION_KEY_K256_PRIVATE_KEY_HEX: settled(IMPORTED),
  PDS_DISABLE_SSRF_PROTECTION: none('requests to private addresses are always refused'),
  PDS_FETCH_MAX_RESPONSE_SIZE: none(OWN_BOUNDS),
  PDS_PROXY_ALLOW_HTTP2: none(OWN_BOUNDS),
  PDS_PROXY_HEADERS_TIMEOUT: none(OWN_BOUNDS),
  PDS_PROXY_BODY_TIMEOUT: none(OWN_BOUNDS),
  PDS_PROXY_MAX_RESPONSE_SIZE: none(OWN_BOUNDS),
  PDS_PROXY_MAX_RETRIES: none(OWN_BOUNDS),
  PDS_PROXY_PREFER_COMPRESSED: none(OWN_BOUNDS),
  PDS_LEXICON_AUTHORITY_DID: none('lexicons are found by DNS alone'),
}

/** Keys whose values are secret: they belong in the environment, and reports leave them out. */
export const secretKeys: ReadonlySet<string> = new Set(['admin_token', 'email.smtp_password'])

export interface Translation {
  /** What to set here, by key. */
  settings: Record<string, Setting>
  /** Variables that are set and matter, but have no counterpart, with the reason. */
  dropped: Record<string, string>
}

/** Translate the variables that are set. Unknown ones that begin with `PDS_` are dropped, with that reason. */
export function translateReferenceEnv(env: ReferenceEnv): Translation {
  const translation: Translation = { settings: {}, dropped: {} }
  for (const [name, text] of Object.entries(env)) {
    if (text === undefined || text === '' || !name.startsWith('PDS_')) continue
    const meaning = Object.hasOwn(referenceVariables, name)
      ? referenceVariables[name]!
      : none('unknown to this version')
    if ('why' in meaning) {
      if (!meaning.isSettled) translation.dropped[name] = meaning.why
    } else {
      const settings = meaning(text)
      if (settings === null) translation.dropped[name] = 'its value means nothing here'
      else Object.assign(translation.settings, settings)
    }
  }
  return translation
}

/** Read a file of `NAME=value` lines, as Docker and systemd do. */
export const parseReferenceEnv = (text: string): ReferenceEnv => parseVariables(text)

/** Returns the value of a variable; null if it is unset or empty. */
export const variable = (env: ReferenceEnv, name: string): string | null => env[name] || null

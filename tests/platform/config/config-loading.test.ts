import { describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import type { Mode } from '../../../src/platform/configuration/config.ts'
import { configKeys, describeProblems, loadConfig } from '../../../src/platform/configuration/config-loading.ts'

const REQUIRED = {
  SERVICE_PUBLIC_URL: 'https://pds.example.com',
  SERVICE_AVAILABLE_USER_DOMAINS: 'example.com',
  SERVICE_DATA_DIR: '/var/lib/holdfast',
}

interface Given {
  env?: Record<string, string>
  file?: string
  mode?: Mode
}

const load = ({ env = REQUIRED, file, mode = 'serve' }: Given) =>
  loadConfig({ env, readFile: () => file ?? null }, mode)

function configOf(given: Given) {
  const loaded = load(given)
  if (!loaded.ok) throw new Error(describeProblems(loaded.problems))
  return loaded.config
}

function problemsOf(given: Given): string[] {
  const loaded = load(given)
  return loaded.ok ? [] : loaded.problems.map(({ subject, fault }) => `${subject}: ${fault}`)
}

const warningsOf = (given: Given) => load(given).warnings.map(({ subject, fault }) => `${subject}: ${fault}`)
const withEnv = (env: Record<string, string>): Given => ({ env: { ...REQUIRED, ...env } })

describe('required keys', () => {
  test('are asked for, all at once, when nothing is configured', () => {
    expect(problemsOf({ env: {} })).toEqual([
      'data_dir (SERVICE_DATA_DIR): required',
      'public_url (SERVICE_PUBLIC_URL): required',
      'available_user_domains (SERVICE_AVAILABLE_USER_DOMAINS): required',
    ])
  })

  test('the required keys suffice', () => {
    expect(configOf({})).toMatchObject({
      bindAddress: '0.0.0.0',
      port: 8080,
      databaseUrl: '/var/lib/holdfast/holdfast.db',
      serverDid: 'did:web:pds.example.com',
      inviteCodeRequired: true,
      plcDirectoryUrl: 'https://plc.directory',
      crawlers: { urls: ['https://bsky.network'] },
      agentAuth: { verificationUri: 'https://pds.example.com/agent/claim' },
      development: false,
    })
  })

  test('are not needed for development', () => {
    expect(configOf({ env: {}, mode: 'dev' })).toMatchObject({
      bindAddress: '127.0.0.1',
      port: 2583,
      dataDir: './data',
      publicUrl: 'http://localhost:2583',
      serverDid: 'did:web:localhost%3A2583',
      availableUserDomains: ['test'],
      inviteCodeRequired: false,
      plcDirectoryUrl: null,
      crawlers: { urls: [] },
      email: { provider: 'log' },
      development: true,
    })
  })
})

describe('problems', () => {
  const faulty = {
    SERVICE_AVAILABLE_USER_DOMAINS: 'example.com',
    SERVICE_DATA_DIR: '/data',
    SERVICE_OAUTH_ACCESS_TOKEN_TTL_SECS: '7200',
    SERVICE_LABELER_POLL_INTERVAL_SECS: '0',
    SERVICE_SIGNING_KEY_MASTER_KEY: 'hunter2',
    SERVICE_PORT: '-1',
  }

  test('are all reported, one line each', () => {
    const loaded = load({ env: faulty })
    expect(loaded.ok).toBe(false)
    expect(loaded.ok ? '' : describeProblems(loaded.problems)).toBe(
      [
        'configuration is invalid (5 problems)',
        '- port (SERVICE_PORT): expected a whole number',
        '- public_url (SERVICE_PUBLIC_URL): required',
        '- signing_key_master_key (SERVICE_SIGNING_KEY_MASTER_KEY): expected 64 hexadecimal characters',
        '- labeler.poll_interval_secs (SERVICE_LABELER_POLL_INTERVAL_SECS): must be greater than 0',
        '- oauth.access_token_ttl_secs (SERVICE_OAUTH_ACCESS_TOKEN_TTL_SECS): 7200 is above the maximum 1800',
      ].join('\n'),
    )
  })

  test('problems never show a secret', () => {
    const secrets = {
      SERVICE_SIGNING_KEY_MASTER_KEY: 'correct-horse-1',
      SERVICE_ADMIN_TOKEN: 'correct-horse-2',
      SERVICE_EMAIL_SMTP_PASSWORD: 'correct-horse-3',
      SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY: 'correct-horse-4',
    }
    const loaded = load({ env: secrets })
    expect(JSON.stringify(loaded)).not.toContain('correct-horse')
  })

  test('of the file do not show its lines', () => {
    const file = 'admin_token = "correct-horse\nport = 1'
    expect(problemsOf({ file })).toEqual([
      './pds.toml:1:29: Invalid TOML document: control characters are not allowed in strings',
    ])
  })

  test('of a broken file hide no problem of the environment, and ask for nothing the file may hold', () => {
    expect(problemsOf({ env: { SERVICE_PORT: 'x' }, file: '=' })).toEqual([
      expect.stringMatching(/^\.\/pds\.toml:1:1: /),
      'port (SERVICE_PORT): expected a whole number',
    ])
  })

  test('include a named file that is missing', () => {
    expect(problemsOf({ env: { ...REQUIRED, SERVICE_CONFIG: '/etc/none.toml' } })).toEqual([
      '/etc/none.toml: there is no such file (SERVICE_CONFIG)',
    ])
  })

  test('include a file that cannot be read', () => {
    const unreadable = loadConfig(
      {
        env: REQUIRED,
        readFile: () => {
          throw new Error('permission denied')
        },
      },
      'serve',
    )
    expect(unreadable).toMatchObject({
      ok: false,
      problems: [{ subject: './pds.toml', fault: 'cannot be read: permission denied' }],
    })
  })
})

describe('secrets', () => {
  const { adminToken, signingKeyMasterKey } = configOf(
    withEnv({ SERVICE_ADMIN_TOKEN: 'correct-horse', SERVICE_SIGNING_KEY_MASTER_KEY: 'ab'.repeat(32) }),
  )

  test('print as [secret] in every form', () => {
    expect(
      `${adminToken} ${JSON.stringify({ adminToken })} ${Bun.inspect({ adminToken, signingKeyMasterKey })}`,
    ).not.toMatch(/correct-horse|171|abab/)
    expect(String(adminToken)).toBe('[secret]')
  })

  test('secrets are revealed on request', () => {
    expect(adminToken?.reveal()).toBe('correct-horse')
    expect(signingKeyMasterKey?.reveal()).toEqual(new Uint8Array(32).fill(0xab))
  })
})

describe('the environment', () => {
  test('the environment beats the file', () => {
    expect(configOf({ ...withEnv({ SERVICE_PORT: '1111' }), file: 'port = 2222' }).port).toBe(1111)
  })

  test('gives SERVICE_PORT precedence over PORT, and PORT over the file', () => {
    expect(configOf(withEnv({ SERVICE_PORT: '1111', PORT: '3333' })).port).toBe(1111)
    expect(configOf({ ...withEnv({ PORT: '3333' }), file: 'port = 2222' }).port).toBe(3333)
  })

  test('does not count when blank', () => {
    expect(configOf({ ...withEnv({ SERVICE_PORT: ' ', SERVICE_ADMIN_TOKEN: '' }), file: 'port = 2222' })).toMatchObject(
      {
        port: 2222,
        adminToken: null,
      },
    )
  })

  test('empties a list when blank', () => {
    const file = '[crawlers]\nurls = ["https://relay.example"]'
    expect(
      configOf({
        ...withEnv({ SERVICE_CRAWLERS: '', SERVICE_RESERVED_HANDLES: '', SERVICE_LABELER_WATCHED: '' }),
        file,
      }),
    ).toMatchObject({
      crawlers: { urls: [] },
      reservedHandles: [],
      labeler: { watched: [] },
    })
  })

  test('refuses a blank list of handle domains', () => {
    expect(problemsOf(withEnv({ SERVICE_AVAILABLE_USER_DOMAINS: '' }))).toEqual([
      'available_user_domains (SERVICE_AVAILABLE_USER_DOMAINS): needs at least one domain',
    ])
  })

  test('separates list items by commas, trims them and drops blanks', () => {
    const config = configOf(
      withEnv({ SERVICE_AVAILABLE_USER_DOMAINS: ' One.example, ,.two.example ', SERVICE_CRAWLERS: 'relay.example' }),
    )
    expect(config.availableUserDomains).toEqual(['one.example', 'two.example'])
    expect(config.crawlers.urls).toEqual(['https://relay.example'])
  })

  test.each(['TRUE', ' false ', 'True'])('reads %p as a boolean', (text) => {
    expect(configOf(withEnv({ SERVICE_WAITLIST_ENABLED: text })).waitlist.enabled).toBe(
      text.trim().toLowerCase() === 'true',
    )
  })

  test.each(['1', 'yes', 'on', '0'])('refuses %p as a boolean', (text) => {
    expect(problemsOf(withEnv({ SERVICE_WAITLIST_ENABLED: text }))).toEqual([
      'waitlist.enabled (SERVICE_WAITLIST_ENABLED): expected true or false',
    ])
  })

  test.each(['+1', '-1', '1_000', '1e3', '0x10', '1.0', '٣', '99999'])('refuses %p as a port', (text) => {
    expect(problemsOf(withEnv({ SERVICE_PORT: text }))).toHaveLength(1)
  })

  test('reads an enumeration in any case', () => {
    expect(configOf(withEnv({ SERVICE_LOG_FORMAT: ' JSON ' })).telemetry.logFormat).toBe('json')
  })

  test('names a key by its path, but for these', () => {
    const byPath = ({ name }: { name: string }) => `SERVICE_${name.toUpperCase().replaceAll('.', '_')}`
    const others = configKeys.filter((key) => key.env.length !== 1 || key.env[0] !== byPath(key))
    expect(Object.fromEntries(others.map(({ name, env }) => [name, env.join(' ')]))).toEqual({
      port: 'SERVICE_PORT PORT',
      'links.privacy_policy': '',
      'links.terms_of_service': '',
      'contact.email': '',
      'blobs.max_blob_size': '',
      'blobs.max_storage_per_account': '',
      'blobs.temp_ttl_secs': '',
      'blobs.s3_access_key_id': 'SERVICE_BLOBS_S3_ACCESS_KEY_ID AWS_ACCESS_KEY_ID',
      'blobs.s3_secret_access_key': 'SERVICE_BLOBS_S3_SECRET_ACCESS_KEY AWS_SECRET_ACCESS_KEY',
      'firehose.log_retention_secs': '',
      'firehose.log_retention_count': '',
      'crawlers.urls': 'SERVICE_CRAWLERS',
      'agent_auth.trusted_issuers': '',
      'agent_auth.granted_scopes': '',
      'agent_auth.pre_claim_scopes': '',
      'agent_auth.claim_sweep_interval_secs': 'SERVICE_AGENT_CLAIM_SWEEP_INTERVAL_SECS',
      'telemetry.otlp_endpoint': 'SERVICE_OTLP_ENDPOINT',
      'telemetry.service_name': 'OTEL_SERVICE_NAME',
      'telemetry.metrics_enabled': 'SERVICE_METRICS_ENABLED',
      'telemetry.metrics_require_admin': 'SERVICE_METRICS_REQUIRE_ADMIN',
      'telemetry.log_format': 'SERVICE_LOG_FORMAT',
      'telemetry.log_level': 'SERVICE_LOG_LEVEL LOG_LEVEL',
    })
    expect(configKeys.map(byPath)).toContain('SERVICE_RATE_LIMIT_GLOBAL_IP_PER_5MIN')
  })

  test('has one name for each key, and never the same for two', () => {
    const names = configKeys.flatMap(({ env }) => env)
    expect(new Set(names).size).toBe(names.length)
  })
})

describe('a variable that is none of ours', () => {
  const lines = (env: Record<string, string>) => problemsOf(withEnv(env))

  test('is refused with what was perhaps meant, all of them at once', () => {
    expect(
      lines({
        SERVICE_BACKUP_PASPHRASE: 'correct-horse',
        SERVICE_PROT: '80',
        SERVICE_COLOUR: 'red',
        SERVICE_PORT: 'x',
      }),
    ).toEqual([
      'SERVICE_BACKUP_PASPHRASE: unknown variable; did you mean SERVICE_BACKUP_PASSPHRASE?',
      'SERVICE_PROT: unknown variable; did you mean SERVICE_PORT?',
      'SERVICE_COLOUR: unknown variable',
      'port (SERVICE_PORT): expected a whole number',
    ])
  })

  test('is refused when it is blank too: it may have been meant to empty a list', () => {
    expect(lines({ SERVICE_CRAWLER: '' })).toEqual([
      'SERVICE_CRAWLER: unknown variable; did you mean SERVICE_CRAWLERS?',
    ])
  })

  test('a variable of ours that names a key by its path leads to where the key is set', () => {
    expect(lines({ SERVICE_TELEMETRY_LOG_LEVEL: 'debug', SERVICE_BLOBS_MAX_BLOB_SIZE: '1' })).toEqual([
      'SERVICE_TELEMETRY_LOG_LEVEL: unknown variable; did you mean SERVICE_LOG_LEVEL?',
      'SERVICE_BLOBS_MAX_BLOB_SIZE: unknown variable; blobs.max_blob_size can be set in the file only',
    ])
  })

  test('is refused in development too, and no value is shown', () => {
    const loaded = load({ env: { SERVICE_ADMIN_TOKN: 'correct-horse' }, mode: 'dev' })
    expect(loaded.ok).toBe(false)
    expect(JSON.stringify(loaded)).not.toContain('correct-horse')
  })

  test('is left alone without our prefix', () => {
    expect(lines({ KUBERNETES_SERVICE_HOST: '10.0.0.1', SERVICES: '', OTEL_SERVICE_VERSION: '1' })).toEqual([])
  })

  test('is not what commands read, nor what systemd tells them', () => {
    expect(
      lines({
        SERVICE_RESULT: 'success',
        SERVICE_CONFIG: '',
        SERVICE_REWRAP_OLD_MASTER_KEY: 'x',
        SERVICE_REWRAP_NEW_MASTER_KEY: 'y',
      }),
    ).toEqual([])
  })
})

describe('the file', () => {
  test('the file fills every table', () => {
    const file = `
      public_url = "https://pds.example.com/"
      data_dir = "/data"
      available_user_domains = ["example.com"]
      [links]
      privacy_policy = "https://example.com/privacy#top"
      [contact]
      email = "ops@example.com"
      [blobs]
      temp_ttl_secs = 0
      [[labeler.watched]]
      did = "did:plc:ar7c4by46qjdydhdevvrndac"
      labels = ["spam"]
    `
    expect(configOf({ env: {}, file })).toMatchObject({
      publicUrl: 'https://pds.example.com',
      links: { privacyPolicy: 'https://example.com/privacy#top' },
      contact: { email: 'ops@example.com' },
      blobs: { tempTtlSecs: 0 },
      labeler: { watched: [{ did: 'did:plc:ar7c4by46qjdydhdevvrndac', labels: ['spam'] }] },
    })
  })

  test('may not hold an empty string, except for mail', () => {
    expect(problemsOf({ file: 'admin_token = ""\n[email]\nfrom = ""\nprovider = ""' })).toEqual([
      'admin_token (SERVICE_ADMIN_TOKEN): must not be empty',
    ])
  })

  test.each([
    ['port = "8080"', 'port (SERVICE_PORT): expected a whole number'],
    ['port = 1.0', 'port (SERVICE_PORT): expected a whole number'],
    ['invite_code_required = "true"', 'invite_code_required (SERVICE_INVITE_CODE_REQUIRED): expected true or false'],
    ['reserved_handles = "a"', 'reserved_handles (SERVICE_RESERVED_HANDLES): expected a list'],
    ['service_name = 1', 'service_name (SERVICE_SERVICE_NAME): expected a string'],
    ['blobs = 1', 'blobs: expected a table'],
  ])('refuses %s', (file, problem) => {
    expect(problemsOf({ file })).toEqual([problem])
  })

  test('warns of unknown keys, with what was perhaps meant', () => {
    const file = `colour = "red"\n[oauth]\nacces_token_ttl_secs = 4\n[rate_limits]\nenabled = true\n[[labeler.watched]]\ndid = "did:web:a.example"\nlabel = "x"`
    expect(warningsOf({ file })).toEqual(
      expect.arrayContaining([
        'colour: unknown key',
        'oauth.acces_token_ttl_secs: unknown key; did you mean oauth.access_token_ttl_secs?',
        'rate_limits: unknown key; did you mean rate_limit?',
        'labeler.watched[0].label: unknown key',
      ]),
    )
  })

  test('accepts the master key, with a warning', () => {
    const file = `signing_key_master_key = "${'ab'.repeat(32)}"`
    expect(configOf({ file }).signingKeyMasterKey).not.toBeNull()
    expect(warningsOf({ file })).toContainEqual(
      'signing_key_master_key (SERVICE_SIGNING_KEY_MASTER_KEY): is safer in the environment than in the file',
    )
  })
})

describe('a file of variables', () => {
  const loadFrom = (files: Record<string, string>, env: Record<string, string> = {}) =>
    loadConfig({ env, readFile: (path) => files[path] ?? null }, 'serve')
  const variables = `# a comment
SERVICE_PUBLIC_URL=https://pds.example.com
SERVICE_AVAILABLE_USER_DOMAINS='pds.example.com, example.org'
SERVICE_DATA_DIR="/srv/a folder"
`

  test('is read if its name ends in .env, or if there is no other file', () => {
    for (const loaded of [
      loadFrom({ '/etc/any.env': variables }, { SERVICE_CONFIG: '/etc/any.env' }),
      loadFrom({ './holdfast.env': variables }),
    ])
      expect(loaded).toMatchObject({
        ok: true,
        config: {
          publicUrl: 'https://pds.example.com',
          availableUserDomains: ['pds.example.com', 'example.org'],
          dataDir: '/srv/a folder',
        },
      })
  })

  test('counts less than the environment', () => {
    expect(loadFrom({ './holdfast.env': variables }, { SERVICE_DATA_DIR: '/other' })).toMatchObject({
      config: { dataDir: '/other' },
    })
  })

  test('may name a file of keys, for those without a variable', () => {
    const files = {
      './holdfast.env': `${variables}SERVICE_CONFIG=/etc/keys.toml\n`,
      '/etc/keys.toml': '[contact]\nemail = "ops@example.com"',
    }
    expect(loadFrom(files)).toMatchObject({ ok: true, config: { contact: { email: 'ops@example.com' } } })
  })

  test('with unknown variables or without the files that it names is refused', () => {
    expect(loadFrom({ './holdfast.env': `${variables}SERVICE_PROT=1\nSERVICE_CONFIG=/none.toml` })).toMatchObject({
      ok: false,
      problems: [
        { subject: '/none.toml', fault: 'there is no such file (SERVICE_CONFIG)' },
        { subject: 'SERVICE_PROT', fault: 'unknown variable; did you mean SERVICE_PORT?' },
      ],
    })
    expect(loadFrom({}, { SERVICE_CONFIG: '/none.env' })).toMatchObject({
      problems: expect.arrayContaining([{ subject: '/none.env', fault: 'there is no such file (SERVICE_CONFIG)' }]),
    })
  })

  test('with a line that names a variable and sets none is refused, without the text of the line', () => {
    for (const line of ['SERVICE_ADMIN_TOKEN: secret', 'SERVICE_ADMIN_TOKEN secret', 'export SERVICE_ADMIN_TOKEN'])
      expect(loadFrom({ './holdfast.env': `# the token\nSERVICE_PORT=1\n${line}\nset -a\n` })).toMatchObject({
        ok: false,
        problems: [{ subject: './holdfast.env:3', fault: 'sets no variable: write NAME=value' }],
      })
  })
})

describe('bounds', () => {
  const positive = configKeys.filter(
    ({ name }) =>
      /(?:[._]interval_secs|_timeout_secs|(?:assertion|token|code)_ttl_secs)$/.test(name) &&
      !['invites.interval_secs', 'backup.interval_secs', 'identity_watch.interval_secs'].includes(name),
  )

  test.each(positive.map(({ name }) => name))('%s must be greater than 0', (name) => {
    const [section, key] = name.split('.')
    const fault = new RegExp(`^${name.replaceAll('.', '\\.')} .*: must be greater than 0$`)
    expect(problemsOf({ file: `[${section}]\n${key} = 0` })).toEqual([expect.stringMatching(fault)])
    expect(problemsOf({ file: `[${section}]\n${key} = 1` })).toEqual([])
  })

  test('cover every period the contract wants greater than 0', () => {
    expect(positive.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        'accounts.deletion_reaper_interval_secs',
        'admin_devices.nonce_sweep_interval_secs',
        'labeler.poll_interval_secs',
        'agent_auth.claim_sweep_interval_secs',
        'blobs.gc_interval_secs',
        'blob_scrub.interval_secs',
        'firehose.gc_interval_secs',
      ]),
    )
  })

  test.each([
    ['SERVICE_ADMIN_DEVICES_NONCE_MAX_AGE_SECS', ['120', '9223372036854775807'], ['119', '9223372036854775808']],
    ['SERVICE_OAUTH_ACCESS_TOKEN_TTL_SECS', ['1', '1800'], ['0', '1801']],
    ['SERVICE_PORT', ['0', '65535'], ['65536']],
    ['SERVICE_EMAIL_SMTP_PORT', ['1', '65535'], ['0', '65536']],
    ['SERVICE_RECOVERY_RELEASE_DELAY_SECS', ['0'], ['9007199254741']],
    ['SERVICE_ACCOUNTS_CHILD_DELETION_GRACE_SECS', ['0'], []],
    ['SERVICE_RATE_LIMIT_GLOBAL_IP_PER_5MIN', ['0'], ['x']],
  ])('%s accepts %p and refuses %p', (name, accepted, refused) => {
    for (const value of accepted) expect(problemsOf(withEnv({ [name]: value }))).toEqual([])
    for (const value of refused) expect(problemsOf(withEnv({ [name]: value }))).toHaveLength(1)
  })
})

describe('values', () => {
  test.each([
    ['SERVICE_PUBLIC_URL', 'http://pds.example.com'],
    ['SERVICE_PUBLIC_URL', 'http://localhost:2583'],
    ['SERVICE_PUBLIC_URL', 'https://pds.example.com/path'],
    ['SERVICE_PUBLIC_URL', 'https://pds.example.com?a=b'],
    ['SERVICE_PUBLIC_URL', 'https://user:pass@pds.example.com'],
    ['SERVICE_PUBLIC_URL', 'pds.example.com'],
    ['SERVICE_PUBLIC_URL', 'https://192.0.2.1'],
    ['SERVICE_PUBLIC_URL', 'https://192.0.2.1.:8443'],
    ['SERVICE_PUBLIC_URL', 'https://3221225985'],
    ['SERVICE_PUBLIC_URL', 'https://0xc0000201'],
    ['SERVICE_PUBLIC_URL', 'https://0300.0.2.1'],
    ['SERVICE_PUBLIC_URL', 'https://127.0.0.1'],
    ['SERVICE_PUBLIC_URL', 'https://[2001:db8::1]'],
    ['SERVICE_PUBLIC_URL', 'https://[::ffff:192.0.2.1]:8443'],
    ['SERVICE_BIND_ADDRESS', 'localhost'],
    ['SERVICE_SERVER_DID', 'web:pds.example.com'],
    ['SERVICE_APPVIEW_DID', 'did:web:api.bsky.app'],
    ['SERVICE_APPVIEW_URL', 'ftp://api.example.com'],
    ['SERVICE_AVAILABLE_USER_DOMAINS', 'exa mple.com'],
    ['SERVICE_DATABASE_URL', 'mysql://localhost/holdfast'],
    ['SERVICE_NOTIFICATIONS_RELAY', 'not-a-node'],
    ['SERVICE_TRUSTED_PROXIES', '10.0.0.0/33'],
    ['SERVICE_LOG_FORMAT', 'xml'],
    ['SERVICE_EMAIL_FROM_NAME', 'Ops\r\nBcc: all@example.com'],
  ])('%s refuses %p', (name, value) => {
    expect(problemsOf(withEnv({ [name]: value }))).toEqual([expect.stringContaining(name)])
  })

  test('plain http on localhost is accepted with the development switch', () => {
    expect(
      configOf(withEnv({ SERVICE_PUBLIC_URL: 'http://localhost:2583', SERVICE_DEVELOPMENT: 'true' })).publicUrl,
    ).toBe('http://localhost:2583')
    expect(
      problemsOf(withEnv({ SERVICE_PUBLIC_URL: 'http://pds.example.com', SERVICE_DEVELOPMENT: 'true' })),
    ).toHaveLength(1)
  })

  test('an address instead of a host name is refused with the reason', () => {
    const refusal = [
      'public_url (SERVICE_PUBLIC_URL): must have a host name: an IP address can be part of neither a DID nor a handle',
    ]
    expect(problemsOf(withEnv({ SERVICE_PUBLIC_URL: 'https://192.0.2.1' }))).toEqual(refusal)
    expect(problemsOf(withEnv({ SERVICE_PUBLIC_URL: 'http://192.0.2.1', SERVICE_DEVELOPMENT: 'true' }))).toEqual(
      refusal,
    )
    expect(problemsOf(withEnv({ SERVICE_PUBLIC_URL: 'http://127.0.0.1:2583', SERVICE_DEVELOPMENT: 'true' }))).toEqual(
      [],
    )
    expect(problemsOf(withEnv({ SERVICE_PUBLIC_URL: 'https://1.2.3.4.example.com' }))).toEqual([])
  })

  test('a directory on the loopback address is accepted in production', () => {
    expect(configOf(withEnv({ SERVICE_PLC_DIRECTORY_URL: 'http://127.0.0.1:2582/' })).plcDirectoryUrl).toBe(
      'http://127.0.0.1:2582',
    )
  })

  test('the server DID carries the port of the public address', () => {
    expect(configOf(withEnv({ SERVICE_PUBLIC_URL: 'https://pds.example.com:8443' })).serverDid).toBe(
      'did:web:pds.example.com%3A8443' as never,
    )
  })

  test('reserved handles are lower-cased, sorted and named once', () => {
    expect(configOf(withEnv({ SERVICE_RESERVED_HANDLES: 'Zed, admin,ADMIN' })).reservedHandles).toEqual([
      'admin',
      'zed',
    ])
  })

  test('the mail port follows the transport security, unless it is given', () => {
    expect(configOf(withEnv({ SERVICE_EMAIL_SMTP_TLS: 'implicit' })).email.smtpPort).toBe(465)
    expect(
      configOf(withEnv({ SERVICE_EMAIL_SMTP_TLS: 'implicit', SERVICE_EMAIL_SMTP_PORT: '2465' })).email.smtpPort,
    ).toBe(2465)
  })

  test('agent scopes are made canonical, and must be scopes', () => {
    const file =
      '[agent_auth]\ngranted_scopes = ["repo:*?action=update&action=create"]\npre_claim_scopes = ["atproto", "repo"]'
    expect(problemsOf({ file })).toEqual(['agent_auth.pre_claim_scopes[1] (file only): "repo" is not a valid scope'])
    expect(configOf({ file: file.split('\n').slice(0, 2).join('\n') }).agentAuth.grantedScopes).toEqual([
      'repo:*?action=create&action=update',
    ])
  })
})

describe('keys that need each other', () => {
  test('a mirror needs its endpoint and credentials', () => {
    expect(problemsOf(withEnv({ SERVICE_BLOB_MIRROR_BUCKET: 'blobs' }))).toEqual([
      'blob_mirror.endpoint (SERVICE_BLOB_MIRROR_ENDPOINT): required when blob_mirror.bucket is set',
      'blob_mirror.access_key_id (SERVICE_BLOB_MIRROR_ACCESS_KEY_ID): required when blob_mirror.bucket is set',
      'blob_mirror.secret_access_key (SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY): required when blob_mirror.bucket is set',
    ])
  })

  const store = {
    SERVICE_BLOBS_STORE: 's3',
    SERVICE_BLOBS_S3_BUCKET: 'mine',
    SERVICE_BLOBS_S3_ENDPOINT: 'https://s3.example.com',
  }
  const keys = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' }

  test('a bucket of blobs needs its endpoint and credentials, which may be those that other programs read too', () => {
    expect(problemsOf(withEnv({ SERVICE_BLOBS_STORE: 's3' }))).toEqual([
      'blobs.s3_bucket (SERVICE_BLOBS_S3_BUCKET): required when blobs.store is s3',
      'blobs.s3_endpoint (SERVICE_BLOBS_S3_ENDPOINT): required when blobs.store is s3',
      'blobs.s3_access_key_id (SERVICE_BLOBS_S3_ACCESS_KEY_ID): required when blobs.store is s3',
      'blobs.s3_secret_access_key (SERVICE_BLOBS_S3_SECRET_ACCESS_KEY): required when blobs.store is s3',
    ])
    expect(configOf(withEnv({ ...store, ...keys })).blobs.s3AccessKeyId).toBe('id')
    expect(configOf(withEnv({ ...store, ...keys, SERVICE_BLOBS_S3_ACCESS_KEY_ID: 'own' })).blobs.s3AccessKeyId).toBe(
      'own',
    )
  })

  test.each([
    [{ SERVICE_BLOBS_STORE: 'disk' }, 'blobs.store (SERVICE_BLOBS_STORE): expected one of folder, s3'],
    [
      { SERVICE_BLOBS_S3_BUCKET: 'https://s3.example.com/mine' },
      'blobs.s3_bucket (SERVICE_BLOBS_S3_BUCKET): is not the name of a bucket',
    ],
    [
      { SERVICE_BLOBS_S3_KEY_PREFIX: 'blobs' },
      'blobs.s3_key_prefix (SERVICE_BLOBS_S3_KEY_PREFIX): must consist of names that each end',
    ],
    [
      { SERVICE_BLOBS_S3_KEY_PREFIX: '/blobs/' },
      'blobs.s3_key_prefix (SERVICE_BLOBS_S3_KEY_PREFIX): must consist of names that each end',
    ],
    [
      { SERVICE_BLOB_MIRROR_ENDPOINT: 'https://s3.example.com', SERVICE_BACKUP_DESTINATION: 's3://mine/blobs/backups' },
      'blobs.s3_key_prefix (SERVICE_BLOBS_S3_KEY_PREFIX): must hold nothing but blobs, and backup.destination overlaps with it',
    ],
  ])('a bucket of blobs is refused with %p', (changes: Record<string, string>, fault) => {
    expect(problemsOf(withEnv({ ...store, ...keys, ...changes }))).toEqual([expect.stringContaining(fault)])
  })

  test('a bucket that is not used, and a mirror of a bucket, are said', () => {
    const mirror = {
      SERVICE_BLOB_MIRROR_BUCKET: 'copies',
      SERVICE_BLOB_MIRROR_ENDPOINT: 'https://s3.example.com',
      SERVICE_BLOB_MIRROR_ACCESS_KEY_ID: 'id',
      SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY: 'secret',
    }
    expect(warningsOf(withEnv({ SERVICE_BLOBS_S3_BUCKET: 'mine' }))).toContainEqual(
      expect.stringContaining('has no effect unless blobs.store is s3'),
    )
    expect(warningsOf(withEnv({ SERVICE_BACKUP_BUCKET_BLOBS: 'true' }))).toContainEqual(
      expect.stringContaining('blobs in the data directory are always part of backups'),
    )
    expect(warningsOf(withEnv({ ...store, ...keys, ...mirror }))).toContainEqual(
      expect.stringContaining('nothing is mirrored or restored at start'),
    )
  })

  test('mail needs what its provider needs', () => {
    expect(problemsOf(withEnv({ SERVICE_EMAIL_PROVIDER: 'smtp' }))).toHaveLength(2)
    expect(problemsOf(withEnv({ SERVICE_EMAIL_PROVIDER: 'mailtrap' }))).toHaveLength(2)
    expect(problemsOf(withEnv({ SERVICE_EMAIL_SMTP_USERNAME: 'me' }))).toHaveLength(1)
    expect(
      problemsOf(
        withEnv({
          SERVICE_EMAIL_SMTP_USERNAME: 'me',
          SERVICE_EMAIL_SMTP_PASSWORD: 'x',
          SERVICE_EMAIL_SMTP_TLS: 'none',
        }),
      ),
    ).toHaveLength(1)
  })

  test('notifications need the QUIC endpoint', () => {
    const relay = { SERVICE_NOTIFICATIONS_RELAY: 'a'.repeat(64) }
    expect(problemsOf(withEnv(relay))).toEqual([
      'notifications.relay (SERVICE_NOTIFICATIONS_RELAY): requires iroh.enabled',
    ])
    expect(problemsOf(withEnv({ ...relay, SERVICE_IROH_ENABLED: 'true' }))).toEqual([])
  })

  test('a push relay is named by its id, in lower case, and by the addresses that are known', () => {
    const relayOf = (changes: Record<string, string>) =>
      configOf(withEnv({ SERVICE_IROH_ENABLED: 'true', SERVICE_NOTIFICATIONS_RELAY: 'A'.repeat(64), ...changes }))
        .notifications
    expect(relayOf({}).relay).toBe('a'.repeat(64))
    expect(relayOf({ SERVICE_NOTIFICATIONS_RELAY: 'Q'.repeat(52) }).relay).toBe('q'.repeat(52))
    const addresses = ['192.0.2.1:4433', '[2001:db8::1]:1', '[::1]:65535']
    expect(relayOf({ SERVICE_NOTIFICATIONS_RELAY_ADDRESSES: addresses.join(',') }).relayAddresses).toEqual(addresses)
    for (const address of [
      '192.0.2.1',
      '192.0.2:1',
      '192.0.2.1:0',
      '192.0.2.1:65536',
      '2001:db8::1:1',
      '[192.0.2.1]:1',
      'relay.example.com:1',
      '[::1]',
    ])
      expect(problemsOf(withEnv({ SERVICE_NOTIFICATIONS_RELAY_ADDRESSES: address })).join()).toContain(
        'expected an IP address and a port',
      )
  })

  test('notifications that nothing can seal are said', () => {
    const relay = { SERVICE_NOTIFICATIONS_RELAY: 'a'.repeat(64), SERVICE_IROH_ENABLED: 'true' }
    const said = expect.stringContaining(
      'signing_key_master_key (SERVICE_SIGNING_KEY_MASTER_KEY): is not set, so no push',
    )
    expect(warningsOf(withEnv(relay))).toContainEqual(said)
    expect(warningsOf(withEnv({ ...relay, SERVICE_SIGNING_KEY_MASTER_KEY: '07'.repeat(32) }))).not.toContainEqual(said)
    expect(warningsOf({})).not.toContainEqual(said)
  })

  test('invites without anybody who can make one are said', () => {
    const said = expect.stringContaining(
      'admin_token (SERVICE_ADMIN_TOKEN): is not set, but sign-up requires invite codes',
    )
    expect(warningsOf({})).toContainEqual(said)
    expect(warningsOf(withEnv({ SERVICE_INVITE_CODE_REQUIRED: 'false' }))).not.toContainEqual(said)
    expect(warningsOf(withEnv({ SERVICE_ADMIN_TOKEN: 'x'.repeat(32) }))).not.toContainEqual(said)
  })

  test('a key of a TOML file among the variables causes a warning with its variable', () => {
    const said = warningsOf(withEnv({ public_url: 'https://new.example.com', 'blobs.store': 's3', HOME: '/root' }))
    expect(said.filter((warning) => warning.includes('no variable'))).toEqual([
      'public_url: no variable has this name: set SERVICE_PUBLIC_URL',
      'blobs.store: no variable has this name: set SERVICE_BLOBS_STORE',
    ])
  })

  test('variables of the reference PDS are named once, without their values', () => {
    const given = withEnv({ PDS_HOSTNAME: 'pds.example.com', PDS_JWT_SECRET: 'hunter2', PDS_DATA_DIRECTORY: '/pds' })
    const said = warningsOf(given).filter((warning) => warning.includes('PDS_'))
    expect(said).toEqual([
      'PDS_DATA_DIRECTORY, PDS_HOSTNAME, PDS_JWT_SECRET: not read here, but by the reference PDS; set data_dir (SERVICE_DATA_DIR), public_url (SERVICE_PUBLIC_URL) instead',
    ])
    expect(configOf(given)).toEqual(configOf({}))
    expect(warningsOf({}).join()).not.toContain('PDS_')
    const many = Object.fromEntries(
      Array.from({ length: 300 }, (_, index) => [`PDS_PORT_${index}_TCP`, 'tcp://10.0.0.1']),
    )
    expect(warningsOf(withEnv(many)).join('\n')).toMatch(/ and 280 more: not read here, but by the reference PDS$/m)
  })

  test('what is dangerous is said, not refused', () => {
    const warnings = warningsOf({
      ...withEnv({ SERVICE_ADMIN_TOKEN: 'short' }),
      file: '[agent_auth]\ngranted_scopes = ["transition:generic"]\njwks_cache_ttl_secs = 10',
    })
    expect(warnings).toEqual(
      expect.arrayContaining([
        'admin_token (SERVICE_ADMIN_TOKEN): is shorter than 32 characters',
        "agent_auth.granted_scopes (file only): transition:generic gives agents the account owner's full access",
        'agent_auth.jwks_refetch_cooldown_secs (SERVICE_AGENT_AUTH_JWKS_REFETCH_COOLDOWN_SECS): should be below agent_auth.jwks_cache_ttl_secs',
      ]),
    )
  })
})

describe('trusted issuers', () => {
  const pemOf = (curve: string) => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: curve })
    const write = (key: typeof publicKey, type: 'spki' | 'pkcs8') => JSON.stringify(key.export({ type, format: 'pem' }))
    return { public: write(publicKey, 'spki'), private: write(privateKey, 'pkcs8') }
  }
  const p256 = pemOf('prime256v1')
  const p384 = pemOf('secp384r1')
  const rsaPem = (modulusLength: number) =>
    JSON.stringify(generateKeyPairSync('rsa', { modulusLength }).publicKey.export({ type: 'spki', format: 'pem' }))
  const file = (...entries: string[]) => entries.map((entry) => `[[agent_auth.trusted_issuers]]\n${entry}`).join('\n')

  test('are trusted by a fixed key or by a key set address', () => {
    const config = configOf({
      file: file(
        `issuer = "https://one.example"\npublic_key_pem = ${p256.public}`,
        `issuer = "https://two.example"\njwks_url = "https://two.example/jwks"\nalgorithm = "EdDSA"\naudience = "me"`,
        `issuer = "https://three.example"\nalgorithm = "ES384"\npublic_keys_pem = [${p384.public}, ${p384.public}]`,
        `issuer = "https://four.example"\nalgorithm = "RS512"\npublic_key_pem = ${rsaPem(2048)}`,
      ),
    })
    expect(config.agentAuth.trustedIssuers).toMatchObject([
      {
        issuer: 'https://one.example',
        audience: null,
        algorithm: 'ES256',
        keys: { source: 'fixed', publicKeysPem: [expect.any(String)] },
      },
      {
        issuer: 'https://two.example',
        audience: 'me',
        algorithm: 'EdDSA',
        keys: { source: 'jwks', url: 'https://two.example/jwks' },
      },
      { issuer: 'https://three.example', algorithm: 'ES384' },
      { issuer: 'https://four.example', algorithm: 'RS512' },
    ])
  })

  test.each([
    ['no key', 'issuer = "a"', '[0]'],
    ['two key sources', `issuer = "a"\njwks_url = "https://a.example"\npublic_key_pem = ${p256.public}`, '[0]'],
    ['an empty issuer', 'issuer = ""\njwks_url = "https://a.example"', '[0].issuer'],
    ['no issuer', 'jwks_url = "https://a.example"', '[0].issuer'],
    ['plain http', 'issuer = "a"\njwks_url = "http://a.example"', '[0].jwks_url'],
    ['an unknown algorithm', 'issuer = "a"\njwks_url = "https://a.example"\nalgorithm = "HS256"', '[0].algorithm'],
    ['a broken key', 'issuer = "a"\npublic_key_pem = "x"', '[0].public_key_pem'],
    ['a private key', `issuer = "a"\npublic_key_pem = ${p256.private}`, '[0].public_key_pem'],
    ['an RSA key that is too short', `issuer = "a"\nalgorithm = "RS256"\npublic_key_pem = ${rsaPem(1024)}`, '[0]'],
    ['a key that does not fit', `issuer = "a"\npublic_key_pem = ${p384.public}`, '[0]'],
  ])('with %s are refused by index', (_, entry, at) => {
    expect(problemsOf({ file: file(entry) })).toEqual([
      expect.stringContaining(`agent_auth.trusted_issuers${at} (file only): `),
    ])
  })

  test('do not include the server itself, whose own assertions would then be renewed by themselves', () => {
    const own = configOf({}).publicUrl
    expect(problemsOf({ file: file(`issuer = "${own}"\njwks_url = "${own}/oauth/jwks"`) })).toEqual([
      'agent_auth.trusted_issuers (file only): must not name this server, which is not an identity provider',
    ])
  })

  test('may not be listed twice', () => {
    const entry = 'issuer = "a"\njwks_url = "https://a.example"'
    expect(problemsOf({ file: file(entry, entry) })).toEqual([
      'agent_auth.trusted_issuers[1].issuer (file only): is listed twice',
    ])
  })
})

test('labelers may not be listed twice, and are DIDs', () => {
  expect(problemsOf(withEnv({ SERVICE_LABELER_WATCHED: 'did:web:a.example,did:web:a.example' }))).toEqual([
    'labeler.watched[1].did (SERVICE_LABELER_WATCHED): is listed twice',
  ])
  expect(problemsOf(withEnv({ SERVICE_LABELER_WATCHED: 'a.example' }))).toEqual([
    'labeler.watched[0] (SERVICE_LABELER_WATCHED): expected a DID',
  ])
})

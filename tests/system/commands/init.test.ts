/** Setting a server up: what is asked, looked at and written, and that every step can be killed and repeated. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createSocket } from 'node:dgram'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { testAuthority } from '../../support/certificates.ts'
import { startMailbox } from '../../support/clients/mailbox.ts'
import { inMountNamespace, withSmallDisk } from '../../support/faults/small-disk.ts'
import { freeDnsPort, freePort } from '../../support/ports.ts'
import { type NameServer, startNameServer } from '../../support/servers/name-server.ts'
import {
  asOrdinaryUser,
  type Ended,
  PROGRAM,
  runProgram,
  startProgram,
  typeAtProgram,
} from '../../support/servers/program.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'

const DOMAIN = 'pds.example.com'
const ADDRESS = '127.0.0.77'

interface Report {
  outcome: string
  copy: string | null
  checks: { name: string; state: string; text: string }[]
  records: object[]
  invite: string | null
  next: string[]
  dropped: Record<string, string>
}

/** Answers as a PLC directory does for the clock; nothing else is asked. */
const services = setUp(() => Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('ok') }))
let folder = ''
let file = ''
let port = 0
let names: NameServer

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-init-'))
  file = join(folder, 'holdfast.env')
  port = await freePort()
  names = await startNameServer()
  for (const name of [DOMAIN, `*.${DOMAIN}`]) names.set(name, 'A', ADDRESS)
})

afterEach(async () => {
  await names[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

/** The network of the test instead of the real one. */
const environment = (): Record<string, string> => ({
  SERVICE_PLC_DIRECTORY_URL: `http://127.0.0.1:${services.port}`,
  SERVICE_CRAWLERS: '',
})

const places = () => ['--config', file, '--data', join(folder, 'data'), '--backups', join(folder, 'backups')]
const dns = () => ['--name-server', names.address, '--address', ADDRESS, '--dns-wait', '0']
const basics = () => ['init', '--yes', '--domain', DOMAIN, '--port', String(port), '--tls', 'off']
const unattended = (...more: string[]) => [...basics(), ...places(), ...dns(), ...more]

const init = (...more: string[]): Promise<Ended> => runProgram(unattended(...more), environment())
const reported = ({ out }: Ended): Report => JSON.parse(out) as Report
const written = () => parseEnv(readFileSync(file, 'utf8'))
const stateOf = ({ checks }: Report, name: string) => checks.find((check) => check.name === name)

describe('unattended', () => {
  test('writes a private configuration with which the server runs, and people sign up with the invite', async () => {
    const ended = await init('--json')
    expect(ended.code).toBe(0)
    const { invite, ...report } = reported(ended)
    expect(report).toMatchObject({
      publicUrl: `https://${DOMAIN}`,
      configuration: file,
      outcome: 'written',
      signUpUrl: `https://${DOMAIN}/account/sign-up?invite_code=${invite}`,
      records: [
        { name: DOMAIN, type: 'A', value: ADDRESS },
        { name: `*.${DOMAIN}`, type: 'A', value: ADDRESS },
      ],
    })
    expect(report.checks.map(({ name, state }) => `${name} ${state}`)).toEqual([
      'disk ok',
      'network-share ok',
      'clock ok',
      'mail warning',
      'backups warning',
      'ports ok',
      'dns ok',
      'reach warning',
    ])
    expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
    expect(readFileSync(file, 'utf8')).toMatch(/^# The server's address/m)
    const variables = written()
    for (const name of ['SERVICE_ADMIN_TOKEN', 'SERVICE_SIGNING_KEY_MASTER_KEY']) {
      expect(variables[name]).toMatch(/^[\da-f]{64}$/)
      expect(ended.out + ended.err).not.toContain(variables[name]!)
    }

    const configured = { SERVICE_CONFIG: file }
    expect(await runProgram(['config', 'check'], configured)).toMatchObject({
      code: 0,
      err: 'warning: email.provider (SERVICE_EMAIL_PROVIDER): is log, so mail is written to the log and not delivered\n',
    })
    await using server = await startProgram(['serve'], configured, folder)
    expect(await runProgram(['invite', 'list', '--json'], configured)).toMatchObject({
      code: 0,
      out: expect.stringContaining(invite!),
    })
    expect(reported(await init('--json'))).toMatchObject({
      outcome: 'kept',
      invite,
      doctor: expect.arrayContaining([expect.objectContaining({ name: 'server', state: 'ok' })]),
    })
    expect(server.output()).toContain('listening')
  })

  test('repeated, it keeps secrets and the invite', async () => {
    const first = reported(await init('--json'))
    const before = readFileSync(file, 'utf8')
    expect(reported(await init('--json'))).toMatchObject({ outcome: 'kept', copy: null, invite: first.invite })
    expect(readFileSync(file, 'utf8')).toBe(before)
    expect(readdirSync(folder).toSorted()).toEqual(['data', 'holdfast.env'])
  })

  test('changes a configuration with --force only, and keeps its secrets, what was added by hand, and a copy', async () => {
    await init()
    writeFileSync(file, `${readFileSync(file, 'utf8')}SERVICE_SERVICE_NAME='My server'\n`)
    const before = written()
    const refused = await init('--sign-up', 'open')
    expect(refused).toMatchObject({
      code: 1,
      err: `holdfast init: ${file} has other values of SERVICE_INVITE_CODE_REQUIRED: leave the options out, or add --force, which keeps a copy\n`,
    })
    const added = await runProgram(unattended(), { ...environment(), SERVICE_NODE_NAME: 'one' })
    expect(added).toMatchObject({ code: 1, err: expect.stringContaining('other values of SERVICE_NODE_NAME') })
    expect(written()).toEqual(before)
    const changed = reported(await init('--sign-up', 'open', '--force', '--json'))
    expect(changed).toMatchObject({ outcome: 'written', copy: `${file}.1`, invite: null })
    expect(written()).toEqual({ ...before, SERVICE_INVITE_CODE_REQUIRED: 'false' })
    expect(parseEnv(readFileSync(changed.copy!, 'utf8'))).toEqual(before)
    expect((statSync(changed.copy!).mode & 0o777).toString(8)).toBe('600')
  })

  test('keeps a password with a number sign, of which a shell and systemd take all', async () => {
    await init()
    writeFileSync(file, `${readFileSync(file, 'utf8')}SERVICE_BACKUP_PASSPHRASE=one#two\n`)
    expect((await init('--sign-up', 'open', '--force')).code).toBe(0)
    expect(readFileSync(file, 'utf8')).toContain("SERVICE_BACKUP_PASSPHRASE='one#two'\n")
  })

  test('makes no new master key for data that is sealed by another', async () => {
    await init()
    rmSync(file)
    expect(await init()).toMatchObject({
      code: 1,
      err: expect.stringContaining(
        `${join(folder, 'data')} holds the data of a server, but its master key is not known`,
      ),
    })
    expect(existsSync(file)).toBe(false)
  })

  test('lets the server encrypt connections if it can open the ports for that, and else the program that has them', async () => {
    const [tlsPort, httpPort, dnsPort] = [await freePort(), await freePort(), await freeDnsPort()]
    const words = ['init', '--yes', '--domain', DOMAIN, '--port', String(port), '--json', ...places(), ...dns()]
    const env = {
      SERVICE_TLS_PORT: String(tlsPort),
      SERVICE_TLS_HTTP_PORT: String(httpPort),
      SERVICE_TLS_DNS_PORT: String(dnsPort),
      SERVICE_TLS_DNS_ADDRESS: '127.0.0.1',
      ...environment(),
    }
    using proxy = Bun.serve({ port: tlsPort, hostname: '127.0.0.1', fetch: () => new Response('proxy') })
    expect((await runProgram(words, { ...env, SERVICE_BIND_ADDRESS: '127.0.0.1' })).code).toBe(0)
    expect(written()).toMatchObject({ SERVICE_TLS_MODE: 'off', SERVICE_BIND_ADDRESS: '127.0.0.1' })
    rmSync(file)
    rmSync(join(folder, 'data'), { recursive: true })
    await proxy.stop(true)
    const ended = await runProgram([...words, '--address', '127.0.0.1'], { ...env, SERVICE_BIND_ADDRESS: '127.0.0.1' })
    expect(reported(ended).records).toContainEqual({ name: `_acme-challenge.${DOMAIN}`, type: 'NS', value: DOMAIN })
    expect(stateOf(reported(ended), 'dns')).toMatchObject({ text: expect.stringContaining('has no NS record') })
    names.delegate(`_acme-challenge.${DOMAIN}`, dnsPort)
    expect(stateOf(reported(ended), 'dns')).toMatchObject({
      text: expect.stringContaining('127.0.0.77, not 127.0.0.1'),
    })
    for (const name of [DOMAIN, `*.${DOMAIN}`]) names.set(name, 'A', '127.0.0.1')
    const again = await runProgram([...words, '--address', '127.0.0.1'], { ...env, SERVICE_BIND_ADDRESS: '127.0.0.1' })
    expect(stateOf(reported(again), 'reach')).toMatchObject({ state: 'ok' })
    expect(stateOf(reported(again), 'dns')).toMatchObject({ state: 'ok', text: 'all records are there' })
    names.delegate(`_acme-challenge.${DOMAIN}`, await freeDnsPort())
    const closed = await runProgram([...words, '--address', '127.0.0.1'], { ...env, SERVICE_BIND_ADDRESS: '127.0.0.1' })
    expect(stateOf(reported(closed), 'dns')).toMatchObject({
      state: 'fault',
      text: `queries about _acme-challenge.${DOMAIN} do not arrive here: its NS record must be ${DOMAIN}, and port 53 open, UDP and TCP`,
    })
    expect(written()).toMatchObject({ SERVICE_TLS_MODE: 'acme', SERVICE_TLS_ACME_CHALLENGE: 'dns-01' })

    rmSync(file)
    rmSync(join(folder, 'data'), { recursive: true })
    const resolver = createSocket('udp4')
    await new Promise<void>((resolve) => resolver.bind(dnsPort, '127.0.0.1', resolve))
    const without53 = await runProgram([...words, '--skip-dns'], { ...env, SERVICE_BIND_ADDRESS: '127.0.0.1' })
    resolver.close()
    expect(without53.code).toBe(0)
    expect(written()).toMatchObject({ SERVICE_TLS_MODE: 'acme', SERVICE_TLS_ACME_CHALLENGE: 'http-01' })
  })

  test('a server that encrypts connections listens at IPv6 addresses too, if the machine has one', async () => {
    const [tlsPort, httpPort] = [await freePort(), await freePort()]
    const env = {
      SERVICE_TLS_PORT: String(tlsPort),
      SERVICE_TLS_HTTP_PORT: String(httpPort),
      SERVICE_TLS_ACME_CHALLENGE: 'http-01',
      ...environment(),
    }
    const words = ['init', '--yes', '--domain', DOMAIN, '--port', String(port), '--tls', 'acme', ...places()]
    const { code, out } = await runProgram(
      [...words, '--skip-dns', '--address', '203.0.113.7,2001:db8::7', '--json'],
      env,
    )
    expect(code).toBe(0)
    expect((JSON.parse(out) as Report).records).toEqual([
      { name: DOMAIN, type: 'A', value: '203.0.113.7' },
      { name: DOMAIN, type: 'AAAA', value: '2001:db8::7' },
      { name: `*.${DOMAIN}`, type: 'A', value: '203.0.113.7' },
      { name: `*.${DOMAIN}`, type: 'AAAA', value: '2001:db8::7' },
    ])
    expect(written()).toMatchObject({ SERVICE_BIND_ADDRESS: '::', SERVICE_TLS_MODE: 'acme' })
  })

  test('completes the configuration that a package brings', async () => {
    writeFileSync(file, readFileSync(join(import.meta.dir, '../../../release/files/holdfast.env')))
    expect((await init()).code).toBe(0)
    expect(written()).toMatchObject({
      SERVICE_PUBLIC_URL: `https://${DOMAIN}`,
      SERVICE_DATA_DIR: join(folder, 'data'),
      SERVICE_BIND_ADDRESS: '127.0.0.1',
      SERVICE_BACKUP_DESTINATION: join(folder, 'backups'),
    })
    expect(existsSync(`${file}.1`)).toBe(true)
  })

  test('has alerts mailed to the operator whose address it is told, for whatever it is', async () => {
    await using mailbox = await startMailbox({ tls: 'none' })
    const mail = {
      SERVICE_EMAIL_PROVIDER: 'smtp',
      SERVICE_EMAIL_SMTP_HOST: '127.0.0.1',
      SERVICE_EMAIL_SMTP_PORT: String(mailbox.port),
      SERVICE_EMAIL_SMTP_TLS: 'none',
    }
    const addresses = [
      [['--operator-mail', 'me@example.com'], {}],
      [[], { SERVICE_TLS_ACME_EMAIL: 'me@example.com' }],
    ] as const
    for (const [words, env] of addresses) {
      const ended = await runProgram(unattended(...words), { ...environment(), ...mail, ...env })
      expect(ended.code).toBe(0)
      expect(written()).toMatchObject({ SERVICE_ALERTS_MAIL_TO: 'me@example.com' })
      rmSync(file)
      rmSync(join(folder, 'data'), { recursive: true })
    }
    // Without a mail server, nothing would arrive.
    expect((await runProgram(unattended(), { ...environment(), ...addresses[1][1] })).code).toBe(0)
    expect(written()['SERVICE_ALERTS_MAIL_TO']).toBeUndefined()
  })

  test('tries the mail server, whose password it takes from standard input and does not repeat', async () => {
    const mail = createServer((socket) => void socket.end('421 closed\r\n')).listen(0, '127.0.0.1')
    const { port: mailPort } = mail.address() as AddressInfo
    const address = `smtp://me%40example.com:hunter2hunter2@127.0.0.1:${mailPort}\n`
    const ended = await runProgram(unattended('--mail', '-', '--json'), environment(), PROGRAM, address)
    mail.close()
    expect(ended.code).toBe(1)
    expect(stateOf(reported(ended), 'mail')).toMatchObject({ state: 'fault' })
    expect(existsSync(file)).toBe(false)
    expect(ended.out + ended.err).not.toContain('hunter2')
  })

  test.each([
    [['--domain', 'https://pds.example.com'], 2, 'give the name alone, pds.example.com'],
    [['--domain', 'pds.example.com:8080'], 2, 'has a port'],
    [['--domain', '203.0.113.7'], 2, 'is an IP address'],
    [['--domain', 'pds'], 2, 'is a single label'],
    [['--domain', 'bücher.example.org'], 2, 'xn--bcher-kva.example.org'],
    [['--mail', 'http://mail.example.com'], 2, '--mail takes smtp://'],
    [['--mail', 'smtp://a:%zz@mail.example.com'], 2, '--mail takes smtp://'],
    [['--sign-up', 'friends'], 2, '--sign-up must be one of invite, open, closed'],
    [['--address', 'here'], 2, '--address takes IP addresses'],
    [['--config', 'pds.toml'], 2, '--config takes a name that ends in .env'],
    [['--port', '99999'], 1, '99999 is above the maximum 65535'],
    [['--mail-from', 'me'], 1, 'expected an e-mail address'],
    [['--from-reference', '/none.env'], 1, 'there is no file /none.env'],
  ])('refuses %p', async (words, code, fault) => {
    const ended = await init(...words)
    expect({ code: ended.code, err: ended.err }).toEqual({ code, err: expect.stringContaining(fault) })
    expect(readdirSync(folder)).toEqual([])
  })

  test('without a terminal, --yes and a domain are required', async () => {
    expect(await runProgram(['init', ...places()], environment())).toMatchObject({
      code: 2,
      err: expect.stringContaining('there is no terminal to prompt at: add --yes'),
    })
    expect(await runProgram(['init', '--yes', '--tls', 'off', ...places()], environment())).toMatchObject({
      code: 2,
      err: expect.stringContaining('--domain is required with --yes'),
    })
  })
})

describe('what it looks at', () => {
  const nothingWritten = async (name: string, text: string, ...more: string[]) => {
    const ended = await init('--json', ...more)
    expect(ended.code).toBe(1)
    expect(stateOf(reported(ended), name)).toMatchObject({ state: 'fault', text: expect.stringContaining(text) })
    expect(reported(ended)).toMatchObject({ outcome: 'none', invite: null })
    expect(existsSync(file)).toBe(false)
    expect(existsSync(join(folder, 'data'))).toBe(false)
  }

  test('a port that another program uses', async () => {
    using _other = Bun.serve({ port, hostname: '127.0.0.1', fetch: () => new Response('other') })
    await nothingWritten('ports', `port ${port} of 127.0.0.1 is in use by another program`)
  })

  test('a port that another PDS uses, which does not get the credential of this one', async () => {
    await init()
    const headers: string[] = []
    using _other = Bun.serve({
      port,
      hostname: '127.0.0.1',
      fetch(request) {
        headers.push(request.headers.get('authorization') ?? '')
        return Response.json({ version: '0.4.1' })
      },
    })
    expect(stateOf(reported(await init('--json')), 'ports')).toMatchObject({ state: 'fault' })
    expect(new Set(headers)).toEqual(new Set(['']))
  })

  test('a wildcard that is missing', async () => {
    names.set(`*.${DOMAIN}`, 'A')
    await nothingWritten('dns', `*.${DOMAIN} has no address`)
  })

  test('names that lead elsewhere', async () => {
    names.set(DOMAIN, 'A', '198.51.100.9')
    names.set(`*.${DOMAIN}`, 'A', ADDRESS, '198.51.100.9')
    await nothingWritten(
      'dns',
      `${DOMAIN} is 198.51.100.9, not ${ADDRESS}; *.${DOMAIN} is 198.51.100.9, not ${ADDRESS}`,
    )
  })

  test('name servers that do not answer', async () => {
    names.setSilent(true)
    await nothingWritten('dns', `${DOMAIN} cannot be looked up`)
  })

  test('name servers that invent addresses, whose answers prove nothing', async () => {
    names.set('*', 'A', ADDRESS)
    const ended = await init('--json')
    expect(stateOf(reported(ended), 'dns')).toMatchObject({ text: expect.stringContaining('invents addresses') })
  })

  test('addresses that only this network reaches', async () => {
    const private_ = ['--name-server', names.address, '--dns-wait', '0', '--json']
    for (const name of [DOMAIN, `*.${DOMAIN}`]) names.set(name, 'A', '192.168.1.7')
    const words = [
      'init',
      '--yes',
      '--domain',
      DOMAIN,
      '--port',
      String(port),
      '--tls',
      'off',
      ...places(),
      ...private_,
    ]
    const ended = await runProgram(words, environment())
    expect(stateOf(reported(ended), 'dns')).toMatchObject({
      state: 'fault',
      text: expect.stringContaining(`${DOMAIN} is 192.168.1.7, which others cannot reach`),
    })
  })

  test('a database that cannot be reached, and one that is sealed by another key', async () => {
    const env = { ...environment(), SERVICE_DATABASE_URL: `postgres://me:hunter2@127.0.0.1:${await freePort()}/pds` }
    const away = await runProgram(unattended('--json'), env)
    expect(away.code).toBe(1)
    expect(stateOf(reported(away), 'database')).toMatchObject({ state: 'fault' })
    expect(away.out + away.err).not.toContain('hunter2')
    expect(existsSync(file)).toBe(false)

    await init()
    const text = readFileSync(file, 'utf8')
    writeFileSync(file, text.replace(/(MASTER_KEY)=.*/, `$1=${'0'.repeat(64)}`))
    const sealed = await init('--json')
    expect(sealed.code).toBe(1)
    expect(stateOf(reported(sealed), 'master-key')).toMatchObject({
      state: 'fault',
      text: 'the configured master key does not decrypt the secrets of this database',
    })
  })

  test('backups in the data folder, and those in a bucket without keys', async () => {
    await nothingWritten('backups', 'is in the data folder', '--backups', join(folder, 'data/backups'))
    await nothingWritten('backups', 'cannot be reached without an endpoint', '--backups', 's3://bucket/backups')
  })

  test('a disk that is nearly full', async () => {
    const disk = join(folder, 'disk')
    const ended = await runProgram(unattended('--data', join(disk, 'data'), '--json'), environment(), [
      ...withSmallDisk(disk, 4 * 1024 ** 2),
      ...PROGRAM,
    ])
    expect(ended.code).toBe(1)
    expect(stateOf(reported(ended), 'disk')).toMatchObject({ state: 'fault' })
    expect(existsSync(file)).toBe(false)
  })

  test('a folder that this user may not write', async () => {
    chmodSync(folder, 0o777)
    const ended = await runProgram(unattended('--data', '/etc/holdfast-data', '--json'), environment(), asOrdinaryUser)
    expect(ended.code).toBe(1)
    // Never that /etc is to be given away.
    expect(stateOf(reported(ended), 'disk')).toMatchObject({
      state: 'fault',
      text: 'this user may not create /etc/holdfast-data',
      remedy: 'create it and give it to the user that the server runs as, or name another folder with --data',
    })
  })

  test('a disk that is full when the configuration is written', async () => {
    const disk = join(folder, 'disk')
    mkdirSync(disk)
    const full = inMountNamespace(
      'mount -t tmpfs -o size=8k,mode=700 tmpfs "$1" && head -c 8192 /dev/zero >"$1/ballast" && shift',
      [disk],
    )
    const words = unattended('--config', join(disk, 'holdfast.env'))
    expect(await runProgram(words, environment(), [...full, ...PROGRAM])).toMatchObject({
      code: 1,
      err: `holdfast init: the disk of ${join(disk, 'holdfast.env')} is full: free some space\n`,
    })
    expect(existsSync(join(folder, 'data'))).toBe(false)
  })

  test('leaves a configuration that another one has written while it waited', async () => {
    names.set(`*.${DOMAIN}`, 'A')
    const waiting = init('--dns-wait', '60')
    await until(() => names.questions.some((question) => /^A holdfast-\w+\.pds/.test(question)))
    expect((await init('--skip-dns')).code).toBe(0)
    const before = readFileSync(file, 'utf8')
    names.set(`*.${DOMAIN}`, 'A', ADDRESS)
    expect(await waiting).toMatchObject({
      code: 1,
      err: expect.stringContaining(
        `${file} has been written by another process since this command began, and stays as it is now: run the same command again`,
      ),
    })
    expect(readFileSync(file, 'utf8')).toBe(before)
    expect(reported(await init('--json'))).toMatchObject({ outcome: 'kept' })
  })

  test('waits for records that come late', async () => {
    names.set(`*.${DOMAIN}`, 'A')
    const words = unattended('--dns-wait', '60', '--json')
    const done = runProgram(words, environment())
    await until(() => names.questions.some((question) => /^A holdfast-\w+\.pds/.test(question)))
    names.set(`*.${DOMAIN}`, 'A', ADDRESS)
    const ended = await done
    expect(ended.err).toContain(`waiting: *.${DOMAIN} has no address`)
    expect(reported(ended)).toMatchObject({ outcome: 'written' })
  })

  test('looks at no name with --skip-dns', async () => {
    expect((await init('--skip-dns')).code).toBe(0)
    expect(names.questions).toEqual([])
  })
})

describe('a reference PDS', () => {
  test('is translated, with a line for each variable that has no counterpart', async () => {
    const env = join(folder, 'pds.env')
    writeFileSync(
      env,
      `PDS_HOSTNAME=${DOMAIN}
PDS_ADMIN_PASSWORD=the admin password of the old server
PDS_JWT_SECRET=00
PDS_INVITE_REQUIRED=false
PDS_CONTACT_EMAIL_ADDRESS=ops@example.com
PDS_BLOB_UPLOAD_LIMIT=104857600
PDS_HOME_URL=https://example.com
PDS_HCAPTCHA_SITE_KEY=x
PDS_COLOUR=red
`,
    )
    const words = ['init', '--yes', '--from-reference', env, '--tls', 'off', '--port', String(port)].concat(
      places(),
      dns(),
    )
    // The old server may still run.
    using _former = Bun.serve({ port, hostname: '127.0.0.1', fetch: () => Response.json({ version: '0.4.1' }) })
    const ended = await runProgram(words, environment())
    expect(ended.code).toBe(0)
    expect(ended.out).toContain('stop the old server before you start this one')
    expect(ended.out.split('\n').filter((line) => line.startsWith('PDS_'))).toEqual([
      'PDS_HOME_URL has no counterpart: the landing page is at public_url',
      'PDS_HCAPTCHA_SITE_KEY has no counterpart: there is no captcha: use invites or the waitlist',
      'PDS_COLOUR has no counterpart: unknown to this version',
    ])
    expect(written()).toMatchObject({
      SERVICE_PUBLIC_URL: `https://${DOMAIN}`,
      SERVICE_ADMIN_TOKEN: 'the admin password of the old server',
      SERVICE_INVITE_CODE_REQUIRED: 'false',
      SERVICE_CONFIG: join(folder, 'holdfast.toml'),
    })
    expect((await runProgram(['config', 'check'], { SERVICE_CONFIG: file })).out).toMatch(
      /^contact.email = "ops@example.com"$[^]*^blobs.max_blob_size = 104857600$/m,
    )
    expect(ended.out).toContain('import-reference <data folder of the reference>')
    // Accounts move into a folder that no server has used.
    expect(existsSync(join(folder, 'data'))).toBe(false)
    expect((await runProgram(words, environment())).out).toContain(`${file} stays as it is`)
  })
})

describe('interrupted', () => {
  test('killed after any line that it says, it can be repeated, and makes no second secret or invite', async () => {
    const { lines } = await killedAfter(Infinity)
    rmSync(join(folder, 'data'), { recursive: true })
    rmSync(file)
    let secrets: unknown = null
    for (let count = 1; count <= lines; count++) {
      await killedAfter(count)
      if (existsSync(file)) secrets ??= written()
      if (secrets !== null) expect(written()).toEqual(secrets as NodeJS.Dict<string>)
    }
    const { invite } = reported(await init('--json'))
    if (secrets !== null) expect(written()).toEqual(secrets as NodeJS.Dict<string>)
    const configured = { SERVICE_CONFIG: file }
    await using _server = await startProgram(['serve'], configured, folder)
    const { out } = await runProgram(['invite', 'list', '--json'], configured)
    expect(JSON.parse(out)).toMatchObject([{ code: invite }])
  })

  async function killedAfter(count: number): Promise<{ lines: number }> {
    const env = { PATH: process.env['PATH'] ?? '', HOME: folder, ...environment() }
    const child = Bun.spawn([...PROGRAM, ...unattended()], { env, cwd: folder, stdout: 'pipe', stderr: 'ignore' })
    let lines = 0
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      lines += chunk.split('\n').length - 1
      if (lines >= count) child.kill('SIGKILL')
    }
    await child.exited
    return { lines }
  }
})

describe('at a terminal', () => {
  test('asks for what it cannot find out, again after an answer that means nothing', async () => {
    const { code, screen } = await typeAtProgram(
      ['init', '--port', String(port), '--tls', 'off', '--config', file, '--data', join(folder, 'data'), ...dns()],
      environment(),
      [
        ['Domain of the server', 'localhost\r'],
        ['Domain of the server', `${DOMAIN}\r`],
        ['Who may sign up', 'closed\r'],
        ['Mail server', 'mail.example.com\r'],
        ['Mail server', '\r'],
        ['Backups', '~/backups\r'],
        ['Backups', 'sftp://backups.example.com/pds\r'],
        ['Backups', `${join(folder, 'backups')}\r`],
      ],
      withoutSystemd,
    )
    expect(code).toBe(0)
    expect(screen).toContain('"localhost" is a single label')
    expect(screen).toContain('expected a path without ~, which only shells replace')
    expect(screen).toContain('expected a folder or s3://bucket/prefix')
    expect(screen).toContain('account create NAME ADDRESS')
    expect(written()).toMatchObject({ SERVICE_PUBLIC_URL: `https://${DOMAIN}`, SERVICE_INVITE_CODE_REQUIRED: 'true' })
  })

  test('asks again who gets the certificates, unless the answer is y or n', async () => {
    const [tlsPort, httpPort, dnsPort] = [await freePort(), await freePort(), await freeDnsPort()]
    const { code, screen } = await typeAtProgram(
      ['init', '--port', String(port), '--config', file, '--data', join(folder, 'data'), ...dns()],
      {
        ...environment(),
        SERVICE_TLS_PORT: String(tlsPort),
        SERVICE_TLS_HTTP_PORT: String(httpPort),
        SERVICE_TLS_DNS_PORT: String(dnsPort),
      },
      [
        ['Domain of the server', `${DOMAIN}\r`],
        ['Who may sign up', '\r'],
        ['Let the server get its certificates', 'perhaps\r'],
        ['y or n, please', 'no\r'],
        ['Mail server', '\x03'],
      ],
      withoutSystemd,
    )
    expect(code).toBe(130)
    expect(screen).toContain('y or n, please')
  })

  test('a folder that only a shell would find, and a place of another kind, are refused', async () => {
    for (const [option, place] of [
      ['--backups', '~/backups'],
      ['--backups', 's3:/bucket'],
      ['--data', '~/data'],
    ] as const) {
      const words = ['init', '--yes', '--domain', DOMAIN, '--config', file, '--port', String(port), option, place]
      const { code, err } = await runProgram(words, environment())
      expect([place, code, existsSync(join(folder, '~'))]).toEqual([place, 1, false])
      expect(err).toMatch(/expected a (?:path without ~|folder or s3:)/)
    }
    const backup = await runProgram(['backup', 'sftp://backups.example.com/pds', '--dev'], {
      SERVICE_DATA_DIR: join(folder, 'data'),
    })
    expect(backup).toMatchObject({ code: 1, err: expect.stringContaining('expected a folder or s3://bucket/prefix') })
  })

  test('a mail server is tried with the password, which is not shown, and mail can be sent then', async () => {
    const password = 'hunter2 $HOME "quoted"'
    await using mailbox = await startMailbox({ tls: 'implicit', login: { user: 'me@example.com', password } })
    const authority = join(folder, 'authority.pem')
    writeFileSync(authority, testAuthority)
    const { code, screen } = await typeAtProgram(
      [...basics().filter((word) => word !== '--yes'), '--sign-up', 'open', ...places(), ...dns()],
      { ...environment(), NODE_EXTRA_CA_CERTS: authority },
      [
        ['Mail server', `smtps://me%40example.com@localhost:${mailbox.port}\r`],
        ['Password of me@example.com', `${password}\r`],
      ],
      withoutSystemd,
    )
    expect(code).toBe(0)
    expect(screen).toContain('smtp accepts our login')
    expect(screen).not.toContain('hunter2')
    const configured = { SERVICE_CONFIG: file, NODE_EXTRA_CA_CERTS: authority }
    const sent = await runProgram(['mail', 'test', 'you@example.com'], configured)
    expect({ code: sent.code, received: mailbox.received }).toMatchObject({
      code: 0,
      received: [{ from: 'me@example.com', to: ['you@example.com'], user: 'me@example.com' }],
    })
  })

  test('the records can be skipped, or set while it waits', async () => {
    names.set(`*.${DOMAIN}`, 'A')
    const words = [...basics().filter((word) => word !== '--yes'), '--sign-up', 'open', '--mail', 'none', ...places()]
    const skipped = await typeAtProgram(
      [...words, ...dns()],
      environment(),
      [['Set them, and press Enter', 's\r']],
      withoutSystemd,
    )
    expect(skipped).toMatchObject({ code: 0, screen: expect.stringContaining(`*.${DOMAIN} has no address`) })
    rmSync(file)
    const waited = typeAtProgram(
      [...words, ...dns(), '--dns-wait', '60'],
      environment(),
      [['Set them, and press Enter', '\r']],
      withoutSystemd,
    )
    const asked = names.questions.length
    await until(() => names.questions.slice(asked).some((question) => /^A holdfast-\w+\.pds/.test(question)))
    names.set(`*.${DOMAIN}`, 'A', ADDRESS)
    expect(await waited).toMatchObject({ code: 0, screen: expect.stringContaining('all records are there') })
  })

  test('Ctrl-C at a question ends it with 130, and nothing is written', async () => {
    const { code } = await typeAtProgram(
      ['init', '--tls', 'off', ...places(), ...dns()],
      environment(),
      [['Domain of the server', '\x03']],
      withoutSystemd,
    )
    expect(code).toBe(130)
    expect(readdirSync(folder)).toEqual([])
  })
})

/** Not asked about a service of systemd, whatever machine this is. */
const withoutSystemd = ['env', 'PATH=/nonexistent', ...PROGRAM]

/**
 * The service of systemd that `init` installs, on a machine of its own: /etc and /usr/local are empty and writable, and
 * programs that stand for those of systemd note how they are called. `systemctl restart` really starts the server.
 */
import { afterAll, expect, test } from 'bun:test'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { inMountNamespace } from '../../support/faults/small-disk.ts'
import { freeDnsPort, freePort } from '../../support/ports.ts'
import { startNameServer } from '../../support/servers/name-server.ts'
import { PROGRAM, runProgram, typeAtProgram } from '../../support/servers/program.ts'
import { setUp } from '../../support/set-up.ts'

const DOMAIN = 'pds.example.com'
const services = setUp(() => Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('ok') }))
const folder = mkdtempSync(join(tmpdir(), 'holdfast-service-'))
const inFolder = (name: string) => join(folder, name)
const [etc, local, programs, srv] = [inFolder('etc'), inFolder('local'), inFolder('programs'), inFolder('srv')]
const log = join(folder, 'calls')
const releaseFile = (name: string) => readFileSync(join(import.meta.dir, '../../../release/files', name), 'utf8')

for (const each of [etc, join(local, 'bin'), programs, srv]) mkdirSync(each, { recursive: true })
cpSync(PROGRAM[0]!, join(local, 'bin/holdfast'))

/** Names the call at which its caller is killed. */
const fatal = join(folder, 'fatal')

const program = (name: string, script: string) => {
  const kill = `[ -e '${fatal}' ] && case "${name} $*" in *"$(cat '${fatal}')"*) kill -9 $PPID ;; esac`
  writeFileSync(join(programs, name), `#!/bin/sh\necho "${name} $*" >>'${log}'\n${kill}\n${script}\n`)
  chmodSync(join(programs, name), 0o755)
}
program('getent', `test -e '${folder}/user'`)
program('useradd', `touch '${folder}/user'`)
program(
  'install',
  'shift 5; while [ $# -gt 0 ]; do case $1 in -m) shift 2 ;; *) mkdir -p -m 700 "$1"; shift ;; esac; done',
)
program('setpriv', 'while case $1 in --*) true ;; *) false ;; esac; do shift; done\nexec "$@"')
program(
  'systemctl',
  `case $1 in restart)
  [ -e '${folder}/pid' ] && kill "$(cat '${folder}/pid')" && while kill -0 "$(cat '${folder}/pid')" 2>/dev/null; do sleep 0.1; done
  (set -a; . /etc/holdfast.env; exec setsid /usr/local/bin/holdfast serve) >'${folder}/server.log' 2>&1 &
  echo $! >'${folder}/pid' ;;
esac`,
)

// Debian's leads through /etc/alternatives.
symlinkSync(realpathSync(Bun.which('awk')!), join(programs, 'awk'))

afterAll(() => {
  if (existsSync(join(folder, 'pid'))) process.kill(Number(readFileSync(join(folder, 'pid'), 'utf8')), 'SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

const mounts = `mount --bind '${etc}' /etc && mount --bind '${local}' /usr/local && mount --bind '${srv}' /srv`
const machine = inMountNamespace(mounts)
/** The machine as it was at first. */
function startAnew() {
  const pid = join(folder, 'pid')
  if (existsSync(pid)) process.kill(Number(readFileSync(pid, 'utf8')), 'SIGKILL')
  for (const path of [join(folder, 'user'), pid, etc, srv]) rmSync(path, { recursive: true, force: true })
  for (const path of [etc, srv]) mkdirSync(path)
}

const words = (port: number) =>
  ['init', '--yes', '--domain', DOMAIN, '--port', String(port), '--tls', 'off', '--skip-dns', '--service'].concat([
    '--data',
    '/srv/holdfast',
    '--backups',
    '/srv/backups',
  ])
const environment = () => ({
  SERVICE_PLC_DIRECTORY_URL: `http://127.0.0.1:${services.port}`,
  SERVICE_CRAWLERS: '',
  PATH: `${programs}:${process.env['PATH']}`,
})
const port = setUp(async () => ({ number: await freePort() }))

async function init() {
  rmSync(log, { force: true })
  const holdfast = [...machine, '/usr/local/bin/holdfast']
  const { code, out, err } = await runProgram([...words(port.number), '--json'], environment(), holdfast)
  return { code, err, report: JSON.parse(out || 'null') as Record<string, unknown>, calls: callsSoFar() }
}

const settings = () => parseEnv(readFileSync(join(etc, 'holdfast.env'), 'utf8'))
const callsSoFar = () => readFileSync(log, 'utf8').trim().split('\n')

test('killed at any step, it can be repeated, and keeps its secrets', async () => {
  let secrets: unknown = null
  for (const call of ['getent', 'useradd', 'install', 'daemon-reload', 'enable', 'restart']) {
    writeFileSync(fatal, call)
    expect([call, await init()]).toMatchObject([call, { code: 137 }])
    secrets ??= settings()
    expect(settings()).toEqual(secrets as NodeJS.Dict<string>)
  }
  rmSync(fatal)
  expect(await init()).toMatchObject({ code: 0, report: { outcome: 'kept', invite: expect.any(String) } })
}, 60_000)

test('a user, folders, the unit and the wrapper are made; the server runs, and the doctor sees it', async () => {
  startAnew()
  const { code, err, report, calls } = await init()
  expect({ code, err }).toMatchObject({ code: 0, err: expect.stringContaining('the server runs at') })
  expect(calls).toEqual([
    'getent passwd holdfast',
    'useradd --system --user-group --home-dir /var/lib/holdfast --no-create-home --shell /usr/sbin/nologin holdfast',
    'install -d -o holdfast -g holdfast -m 700 /srv/holdfast /srv/backups',
    'systemctl daemon-reload',
    'systemctl enable holdfast.service',
    'systemctl restart holdfast.service',
  ])
  const unit = readFileSync(join(etc, 'systemd/system/holdfast.service'), 'utf8')
  expect(unit).toBe(releaseFile('holdfast.service').replaceAll('/usr/bin/holdfast', '/usr/local/bin/holdfast'))
  expect(readFileSync(join(etc, 'systemd/system/holdfast.service.d/places.conf'), 'utf8')).toBe(
    '[Service]\nReadWritePaths=-/srv/holdfast\nReadWritePaths=-/srv/backups\n',
  )
  expect(readFileSync(join(local, 'sbin/pds'), 'utf8')).toContain('--init-groups /usr/local/bin/holdfast "$@"')
  expect(report).toMatchObject({
    configuration: '/etc/holdfast.env',
    outcome: 'written',
    service: 'holdfast.service',
    invite: expect.stringMatching(/^pds-example-com-/),
    doctor: expect.arrayContaining([
      expect.objectContaining({ name: 'server', state: 'ok' }),
      expect.objectContaining({ name: 'operator', state: 'ok' }),
    ]),
  })

  const unconfigured = await runProgram(['account', 'list'], {}, [...machine, '/usr/local/bin/holdfast'])
  expect(unconfigured.code).toBe(1)
  expect(unconfigured.err).toContain('as root, run "pds" instead of "holdfast".\n')
  expect(unconfigured.err).not.toContain('--dev')
  const faulty = await runProgram(['account', 'list'], { SERVICE_PORT: 'x' }, [...machine, '/usr/local/bin/holdfast'])
  expect(faulty.err).not.toContain('instead of')

  const before = settings()
  const again = await init()
  expect(again).toMatchObject({ code: 0, report: { outcome: 'kept', invite: report['invite'] } })
  expect(again.calls).toEqual([
    'getent passwd holdfast',
    'install -d -o holdfast -g holdfast -m 700 /srv/holdfast /srv/backups',
    'systemctl daemon-reload',
  ])
  expect(settings()).toEqual(before)
}, 60_000)

test('the service may write to every folder that the configuration names', async () => {
  startAnew()
  const { code } = await runProgram(
    words(port.number),
    {
      ...environment(),
      SERVICE_BACKUP_CONTINUOUS: '/srv/continuous',
      SERVICE_DATABASE_URL: '/srv/database/holdfast.db',
    },
    [...machine, '/usr/local/bin/holdfast'],
  )
  expect(code).toBe(0)
  const folders = ['/srv/holdfast', '/srv/database', '/srv/backups', '/srv/continuous']
  expect(callsSoFar()).toContain(`install -d -o holdfast -g holdfast -m 700 ${folders.join(' ')}`)
  expect(readFileSync(join(etc, 'systemd/system/holdfast.service.d/places.conf'), 'utf8')).toBe(
    `[Service]\n${folders.map((folder) => `ReadWritePaths=-${folder}\n`).join('')}`,
  )
  startAnew()
  await init()
}, 60_000)

test('what a package has installed stays', async () => {
  rmSync(join(etc, 'systemd'), { recursive: true, force: true })
  const packaged = inMountNamespace(
    `mount --bind '${etc}' /etc && mount --bind '${local}' /usr/local && mount -t tmpfs tmpfs /usr/lib/systemd && mkdir -p /usr/lib/systemd/system && touch /usr/lib/systemd/system/holdfast.service && mount --bind '${srv}' /srv`,
  )
  const { code } = await runProgram(
    ['init', '--yes', '--skip-dns', '--service', '--json'],
    { PATH: `${programs}:${process.env['PATH']}` },
    [...packaged, '/usr/local/bin/holdfast'],
  )
  expect(code).toBe(0)
  expect(existsSync(join(etc, 'systemd/system/holdfast.service'))).toBe(false)
  expect(existsSync(join(etc, 'systemd/system/holdfast.service.d/places.conf'))).toBe(true)
}, 60_000)

test('the guide to the first host, followed at a terminal, ends with a server that people sign up at', async () => {
  startAnew()
  await using names = await startNameServer()
  for (const name of [DOMAIN, `*.${DOMAIN}`]) names.set(name, 'A', '127.0.0.1')
  const guide = readFileSync(join(import.meta.dir, '../../../docs/first-host.md'), 'utf8')
  const blocks = [...guide.matchAll(/^```(?:sh)?\n([^]*?)^```/gm)].map(([, block]) => block!)
  const setting = blocks.findIndex((block) => block === 'holdfast init --service\n')
  const [tlsPort, httpPort, dnsPort] = [await freePort(), await freePort(), await freeDnsPort()]
  const own = inMountNamespace(`mount --bind '${srv}' /var && ${mounts}`)
  const answers = new Map([
    ['Domain of the server', DOMAIN],
    ['Mail server', 'none'],
  ])
  const questions = blocks[setting + 1]!.split('\n').filter((line) => line !== '' && !line.startsWith('Password'))
  const typed = questions.map((line): [string, string] => {
    const question = line.split(/[,:]/)[0]!
    return [question, `${answers.get(question) ?? ''}\r`]
  })
  const { code, screen } = await typeAtProgram(
    ['init', '--service', '--port', String(port.number), '--address', '127.0.0.1', '--name-server', names.address],
    {
      ...environment(),
      SERVICE_TLS_PORT: String(tlsPort),
      SERVICE_TLS_HTTP_PORT: String(httpPort),
      SERVICE_TLS_DNS_PORT: String(dnsPort),
      SERVICE_TLS_DNS_ADDRESS: '127.0.0.1',
      SERVICE_TLS_ACME_DIRECTORY_URL: 'https://127.0.0.1:1/',
    },
    [...typed, ['press Enter to wait', 's\r']],
    [...own, '/usr/local/bin/holdfast'],
  )
  expect(code).toBe(0)
  for (const said of blocks[setting + 2]!.match(/^(?:DNS needs|NAME|pds|\*|_acme)\S*/gm)!)
    expect(screen).toContain(said)
  expect(screen).toMatch(/^Copy the master key in \/etc\/holdfast.env to a safe place/m)
  expect(screen).toMatch(/^Sign up: https:\/\/pds.example.com\/account\/sign-up\?invite_code=pds-example-com-/m)

  const [looking] = blocks.filter((block) => block.startsWith('pds doctor'))
  const path = { PATH: `${programs}:${join('/usr/local', 'sbin')}:${process.env['PATH']}` }
  const looked = await runProgram(['-c', looking!], path, [...own, 'sh'])
  expect(looked.out).toMatch(/^ok +server +the server listens at/m)
  expect(looked.out).toContain('newest event')
}, 60_000)

test('folders with files of others, and paths that units read differently, are refused before anything is written', async () => {
  startAnew()
  mkdirSync(join(srv, 'shared'))
  writeFileSync(join(srv, 'shared/photo'), '')
  cpSync(join(srv, 'shared'), join(srv, 'databases'), { recursive: true })
  writeFileSync(join(srv, 'databases/holdfast.db'), 'x')
  const own = ['--data', '/srv/own', '--backups', 'none']
  const wrong: [string[], string, Record<string, string>?][] = [
    [own, '/srv/databases has files of other users', { SERVICE_DATABASE_URL: '/srv/databases/holdfast.db' }],
    [own, '"." cannot be part of a systemd unit: choose an absolute path', { SERVICE_DATABASE_URL: 'holdfast.db' }],
    [['--data', '/srv/shared', '--backups', 'none'], '/srv/shared has files of other users'],
    [['--data', '/srv/own', '--backups', '/srv/shared'], '/srv/shared has files of other users'],
    [['--data', '/srv/two words', '--backups', 'none'], '"/srv/two words" cannot be part of a systemd unit'],
    [
      ['--data', '/srv/own\nExecStartPre=/bin/true', '--backups', 'none'],
      '\\nExecStartPre=/bin/true" cannot be part of',
    ],
    [['--data', '/srv/own', '--backups', 'none', '--config', '/etc/$(id).env'], '"/etc/$(id).env" cannot be part of'],
    [['--data', '/root', '--backups', 'none'], '/root is in a folder that the service cannot read'],
    [['--data', '/srv/own', '--backups', '/home/backups'], '/home/backups is in a folder that the service cannot read'],
  ]
  for (const [places, said, variables] of wrong)
    expect(
      await runProgram(
        ['init', '--yes', '--skip-dns', '--service', '--tls', 'off', '--domain', DOMAIN, ...places],
        { ...environment(), ...variables },
        [...machine, '/usr/local/bin/holdfast'],
      ),
    ).toMatchObject({ code: 1, err: expect.stringContaining(said) })
  expect(readdirSync(etc)).toEqual([])
}, 60_000)

test('an executable that the service could not read is refused before anything is written', async () => {
  const home = inFolder('home')
  mkdirSync(home)
  cpSync(PROGRAM[0]!, join(home, 'holdfast'))
  const misplaced = '/home/holdfast'
  expect(
    await runProgram(
      ['init', '--yes', '--skip-dns', '--service', '--config', join(etc, 'other.env'), '--domain', DOMAIN].concat([
        '--data',
        '/srv/other',
        '--backups',
        'none',
        '--port',
        String(await freePort()),
      ]),
      { PATH: `${programs}:${process.env['PATH']}`, SERVICE_PLC_DIRECTORY_URL: `http://127.0.0.1:${services.port}` },
      [...inMountNamespace(`${mounts} && mount --bind '${home}' /home`), misplaced],
    ),
  ).toMatchObject({ code: 1, err: expect.stringContaining(`${misplaced} is in a folder that the service cannot read`) })
  expect(existsSync(join(etc, 'other.env'))).toBe(false)
}, 60_000)

test('without root or systemd there is no service', async () => {
  expect(await runProgram(['init', '--yes', '--domain', DOMAIN, '--service'], { PATH: '/nonexistent' })).toMatchObject({
    code: 1,
    err: 'holdfast init: --service needs Linux with systemd, and root\n',
  })
})

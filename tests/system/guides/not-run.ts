/** The lines of the guides' commands that no test of this folder runs, each with the reason. */

const reasons = {
  apt: 'installs packages of the system',
  docker: 'needs Docker',
  dns: 'asks name servers of the internet; tests/system/commands/init.test.ts has wrong answers of every kind',
  release: 'fetches a release; tests/system/release/install-script.test.ts installs one',
  service: 'makes a service of systemd; tests/system/commands/init-service.test.ts does, with programs in its place',
  editor: 'asks a person',
  source: 'builds what the tests have built',
  example: 'starts three nodes; tests/system/cluster/example.test.ts does',
  session: 'needs the session of an app; tests/features/auth/scoped-app-passwords.test.ts asks the endpoint',
  role: 'asks a person; tests/system/commands/operators.test.ts signs in and takes an account down',
  takeover: 'takes over from another machine; tests/system/durability/second-machine.test.ts does',
  damage: 'needs a damaged repository; tests/system/commands/repair.test.ts has one',
  copy: 'runs a second server until it is stopped; tests/features/backup/backup.test.ts starts restored ones',
  wallet: 'asks a person; tests/system/binary/wallet.test.ts does it at a terminal',
} as const

type NotRun = Record<string, Record<string, (typeof reasons)[keyof typeof reasons]>>

/** By guide and line, as they stand there. */
export const notRun: NotRun = {
  'app-passwords.md': {
    'curl https://pds.example.com/v1/app-passwords -H "Authorization: Bearer $ACCESS_JWT" \\': reasons.session,
    '  --json \'{"name": "weather bot", "presets": ["post", "upload-images"], "expiresAt": "2030-01-31T00:00:00.000Z"}\'':
      reasons.session,
  },
  'cluster.md': {
    'npm install': reasons.source,
    'npx bun tests/system/cluster/example.ts --smoke': reasons.example,
  },
  'console.md': {
    "holdfast operator set alice owner --reason 'runs the place with me'": reasons.role,
    'export SERVICE_ADMIN_TOKEN=$(holdfast operator sign-in alice --url https://pds.example.com)': reasons.role,
    "holdfast account takedown spammer --url https://pds.example.com --reason 'case 7'": reasons.role,
  },
  'dns.md': {
    'dig +short A pds.example.com': reasons.dns,
    'dig +short A anything.pds.example.com': reasons.dns,
  },
  'export.md': {
    'export SERVICE_DATA_DIR=/tmp/copy PORT=2599   # and SERVICE_SIGNING_KEY_MASTER_KEY, if the server has one':
      reasons.copy,
    'holdfast restore /mnt/backups --dev': reasons.copy,
    'holdfast dev': reasons.copy,
    'holdfast account export alice.example.com alice.zip --url http://localhost:2599 --token-file /tmp/copy/holdfast.admin-token':
      reasons.copy,
  },
  'first-host.md': {
    'curl --fail --remote-name https://example.com/holdfast/install.sh': reasons.release,
    'sh install.sh': reasons.release,
    'holdfast init --service': reasons.service,
    'holdfast init --yes --service --domain pds.example.com \\': reasons.service,
    '  --mail smtp://me%40example.com:password@smtp.example.com --backups s3://backups/pds --json': reasons.service,
  },
  'install.md': {
    'curl --fail --remote-name-all https://example.com/holdfast/holdfast_0.2.0_amd64.deb{,.minisig}': reasons.release,
    'apt install minisign': reasons.apt,
    'minisign -Vm holdfast_0.2.0_amd64.deb -P RW…': reasons.release,
    'apt install ./holdfast_0.2.0_amd64.deb': reasons.apt,
    'editor /etc/holdfast.env': reasons.editor,
    'curl --fail --remote-name https://example.com/holdfast/install.sh': reasons.release,
    'sh install.sh': reasons.release,
    'curl --fail --remote-name-all https://example.com/holdfast/holdfast-linux-x64{,.minisig}': reasons.release,
    'minisign -Vm holdfast-linux-x64 -P RW…': reasons.release,
    'install -m 755 holdfast-linux-x64 /usr/local/bin/holdfast': reasons.release,
    'useradd --system --user-group --home-dir /var/lib/holdfast --no-create-home --shell /usr/sbin/nologin holdfast':
      reasons.service,
    'install -d -o holdfast -g holdfast -m 700 /var/lib/holdfast /var/backups/holdfast': reasons.service,
    'curl --fail --remote-name-all https://example.com/holdfast/{holdfast.service,holdfast.env,pds}': reasons.release,
    'install -m 600 holdfast.env /etc/holdfast.env': reasons.service,
    "sed -i 's|/usr/bin/holdfast|/usr/local/bin/holdfast|' holdfast.service pds": reasons.service,
    'install -m 644 holdfast.service /etc/systemd/system/holdfast.service': reasons.service,
    'install -m 755 pds /usr/local/sbin/pds': reasons.service,
    'systemctl daemon-reload': reasons.service,
    'install -d -o 65532 -g 65532 -m 700 backups': reasons.docker,
    'install -m 600 /dev/null holdfast.env': reasons.docker,
    'editor holdfast.env Caddyfile': reasons.editor,
    'docker compose up --detach --build': reasons.docker,
    'docker compose exec holdfast /usr/bin/holdfast doctor': reasons.docker,
    'npm install && npm run build                            # dist/holdfast, for this machine': reasons.source,
    'npm run build -- --target linux-arm64,darwin-arm64      # dist/holdfast-linux-arm64, …': reasons.source,
  },
  'moving-in.md': {
    'holdfast init --from-reference /pds/pds.env --service': reasons.service,
  },
  'second-machine.md': {
    'holdfast promote': reasons.takeover,
  },
  'upgrade.md': {
    'pds backup && apt install ./holdfast_0.2.0_amd64.deb': reasons.apt,
  },
  'wallets.md': {
    'holdfast wallet create --server https://pds.example.com   # asks for handle, address and, unless sign-up is open, a code':
      reasons.wallet,
    'holdfast wallet show                                      # the identity, and the keys that can change it, by rank':
      reasons.wallet,
    'holdfast wallet sign-in --print                           # a session for other programs': reasons.wallet,
    'holdfast wallet approve ABCD-1234                         # let an app sign in; the code is on its page':
      reasons.wallet,
  },
  'repair.md': {
    'holdfast repair did:plc:example': reasons.damage,
    'holdfast repair did:plc:example --backup newest': reasons.damage,
    'holdfast repair did:plc:example --car example.car': reasons.damage,
    'holdfast repair did:plc:example --apply': reasons.damage,
    'holdfast repair --undo /var/lib/holdfast/repairs/did-plc-example-20261128T101500Z-3m2abcdefghij.db':
      reasons.damage,
  },
}

import { expect, test } from 'bun:test'
import { mountOf, mountsOfBsd, mountsOfLinux } from './network-share.ts'

test('mounts of Linux are read, with their escapes and without optional fields', () => {
  const text = `22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw
40 27 0:50 /a /mnt/my\\040data rw,relatime shared:5 - nfs4 server:/a rw,vers=4.2
broken
`
  expect(mountsOfLinux(text)).toEqual([
    { at: '/proc', type: 'proc' },
    { at: '/', type: 'ext4' },
    { at: '/mnt/my data', type: 'nfs4' },
  ])
})

test('mounts of macOS are read, whatever a share is called', () => {
  const text = `/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
//me@nas/stuff on /Volumes/stuff on (my) nas (smbfs, nodev, nosuid, mounted by me)
map auto_home on /System/Volumes/Data/home (autofs, automounted, nobrowse)
`
  expect(mountsOfBsd(text)).toEqual([
    { at: '/', type: 'apfs' },
    { at: '/Volumes/stuff on (my) nas', type: 'smbfs' },
    { at: '/System/Volumes/Data/home', type: 'autofs' },
  ])
})

test.each([
  ['/', 'ext4'],
  ['/srv', 'ext4'],
  ['/srv/data', 'cifs'],
  ['/srv/data/deep/er', 'cifs'],
  ['/srv/data/disk/x', 'xfs'],
  ['/srv/database', 'ext4'],
])('%s is on %s', (path, type) => {
  const mounts = [
    { at: '/srv/data', type: 'autofs' },
    { at: '/', type: 'ext4' },
    { at: '/srv/data', type: 'cifs' },
    { at: '/srv/data/disk', type: 'xfs' },
  ]
  expect(mountOf(path, mounts)?.type).toBe(type)
})

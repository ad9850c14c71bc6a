import type { Feature } from '../../../http/feature.ts'
import { deleteRepo, recordsOf } from './repo.ts'
import { readRecord } from './record-store.ts'
import { repoHeads } from './repo-store.ts'
import { readRoutes } from './read-routes.ts'
import { abandonedRepoSweep } from './abandoned-repo-sweep.ts'
import { writeRoutes } from './write-routes.ts'

export const repo: Feature = {
  name: 'repo',
  routes: [...writeRoutes, ...readRoutes],
  sweeps: [abandonedRepoSweep],
  records: { repos: repoHeads, page: recordsOf, find: readRecord },
  forgetAccount: (_, tx, did) => deleteRepo(tx, did),
}

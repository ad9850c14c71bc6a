import type { Feature } from '../../../http/feature.ts'
import { deleteRepo } from './repo.ts'
import { readRoutes } from './read-routes.ts'
import { abandonedRepoSweep } from './abandoned-repo-sweep.ts'
import { writeRoutes } from './write-routes.ts'

export const repo: Feature = {
  name: 'repo',
  routes: [...writeRoutes, ...readRoutes],
  sweeps: [abandonedRepoSweep],
  forgetAccount: (_, tx, did) => deleteRepo(tx, did),
}

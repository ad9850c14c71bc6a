import { accountCommand, nameOf } from './operator-accounts.ts'

export const accountResetFactorsCommand = accountCommand({
  summary: 'Remove the second factors of an account whose holder has lost them.',
  details: `From then on the password alone opens the account, so verify who is asking: a mail from the address of the account is
not proof enough. The holder is notified by mail. The password stays: "account reset-password" replaces it.`,
  async run({ server, account, path }) {
    const value = await server.post<{ hadFactors: boolean }>(`${path}/reset-factors`)
    const text = value.hadFactors
      ? `The second factors of ${nameOf(account)} are removed.`
      : `${nameOf(account)} had no second factor.`
    return { value: { did: account.did, ...value }, text }
  },
})

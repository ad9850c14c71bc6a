// Does the work that the form asks for when it is sent: finds a nonce for which the SHA-256 of challenge, address and
// nonce begins with enough zero bits. Without this script, the server refuses the form and says why.
{
  const BATCH = 256
  const part = document.querySelector('[data-work]')
  const form = part.closest('form')
  const { work: challenge, bits } = part.dataset
  const nonceField = part.querySelector('[name="work_nonce"]')
  const status = part.querySelector('[role="status"]')

  part.querySelector('[data-without-script]').hidden = true

  const zeroBits = (digest) => Math.clz32(new DataView(digest).getUint32(0))

  async function find(subject) {
    const encoder = new TextEncoder()
    for (let start = 0; ; start += BATCH) {
      const found = await Promise.all(
        Array.from({ length: BATCH }, async (_, index) => {
          const bytes = encoder.encode(`${challenge}:${subject}:${start + index}`)
          return zeroBits(await crypto.subtle.digest('SHA-256', bytes)) >= Number(bits) ? start + index : null
        }),
      )
      const nonce = found.find((one) => one !== null)
      if (nonce !== undefined) return String(nonce)
    }
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    // A second press of the button waits for the work that has begun.
    if (!status.hidden) return
    status.hidden = false
    nonceField.value = await find(form.elements.email.value.trim().toLowerCase())
    status.hidden = true
    form.submit()
  })
}

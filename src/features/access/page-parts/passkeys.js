// Asks the browser for a passkey when the button for one is pressed, and sends the form with what the device answers.
// Without this script, the parts of pages that need a passkey stay hidden.
{
  const toBytes = (text) =>
    Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (character) => character.charCodeAt(0))
  const toText = (bytes) =>
    btoa(String.fromCharCode(...new Uint8Array(bytes)))
      .replaceAll('+', '-')
      .replaceAll('/', '_')
      .replaceAll('=', '')
  const descriptors = (list) => list.map((one) => ({ ...one, id: toBytes(one.id) }))

  const ceremonies = {
    async create({ challenge, user, excludeCredentials, ...rest }) {
      const publicKey = {
        ...rest,
        challenge: toBytes(challenge),
        user: { ...user, id: toBytes(user.id) },
        excludeCredentials: descriptors(excludeCredentials),
      }
      const made = await navigator.credentials.create({ publicKey })
      const { clientDataJSON, attestationObject } = made.response
      return answerOf(made, {
        clientDataJSON: toText(clientDataJSON),
        attestationObject: toText(attestationObject),
        transports: made.response.getTransports?.() ?? [],
      })
    },
    async get({ challenge, allowCredentials, ...rest }) {
      const publicKey = { ...rest, challenge: toBytes(challenge), allowCredentials: descriptors(allowCredentials) }
      const found = await navigator.credentials.get({ publicKey })
      const { clientDataJSON, authenticatorData, signature, userHandle } = found.response
      return answerOf(found, {
        clientDataJSON: toText(clientDataJSON),
        authenticatorData: toText(authenticatorData),
        signature: toText(signature),
        userHandle: userHandle === null ? null : toText(userHandle),
      })
    },
  }

  const answerOf = ({ type, rawId }, response) => ({ id: toText(rawId), rawId: toText(rawId), type, response })

  function prepare(part) {
    const button = part.querySelector('button')
    const field = part.querySelector('input')
    const note = part.querySelector('[role=alert]')
    const ceremony = ceremonies[part.dataset.passkey]
    button.addEventListener('click', async (event) => {
      if (field.value !== '') return
      event.preventDefault()
      note.hidden = true
      try {
        field.value = JSON.stringify(await ceremony(JSON.parse(part.dataset.options)))
        button.form.requestSubmit(button)
      } catch {
        note.hidden = false // the person or the device has declined
      }
    })
    // The challenge of a page restored from the back/forward cache may be spent.
    window.addEventListener('pageshow', () => {
      field.value = ''
    })
    part.hidden = false
  }

  if (window.PublicKeyCredential) {
    for (const part of document.querySelectorAll('[data-passkey]')) prepare(part)
    for (const part of document.querySelectorAll('[data-no-passkey]')) part.hidden = true
  }
}

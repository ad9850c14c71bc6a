/** What mails say about events of an account. */
import { textTable } from '../../../http/texts.ts'

export const noticeTexts = textTable(
  {
    handleChangedSubject: 'Your handle was changed',
    handleChanged: 'The handle of your account is now {handle}.',
    handleUnpublished:
      'The handle of your account is now {handle}. Your wallet has to add it to your identity, because only your own key can change that. Until then, others see the account without a valid handle.',
    handleRemovedSubject: 'A handle was removed from your account',
    handleRemoved: 'Your account no longer has the handle {handle}.',
    emailChangedSubject: 'Your email address was changed',
    emailChanged:
      'Your account now has a different email address. This email goes to your old address. Later ones go to the new address.',
    passwordChangedSubject: 'Your password was changed',
    passwordChanged: 'Your account has a new password. Every session opened with the old one has been signed out.',
    passwordResetSubject: 'Your password was reset',
    passwordReset:
      'A new password was set with a code that we emailed to you. Every app, browser and program has lost its access.',
    emailFactorOnSubject: 'Signing in now requires a code from your email',
    emailFactorOn:
      'From now on, a sign-in with your password also requires a code that we email to you. App passwords work without a code.',
    emailFactorOffSubject: 'Signing in no longer requires a code from your email',
    emailFactorOff: 'Your password alone opens your account again: we no longer ask for a code that we email to you.',
    totpAddedSubject: 'An authenticator app was added to your account',
    totpAdded:
      'From now on, a sign-in with your password also requires a code from the app, or one of your recovery codes. App passwords work without a code.',
    totpRemovedSubject: 'The authenticator app was removed from your account',
    totpRemoved: 'Signing in no longer requires a code from the app, and the recovery codes no longer work.',
    passkeyAddedSubject: 'A passkey was added to your account',
    passkeyAdded:
      'Anyone who has the device with the passkey, and its PIN, finger or face, can sign in to your account. From now on, a sign-in with your password also requires the passkey, or one of your recovery codes. App passwords work without it.',
    passkeyRemovedSubject: 'A passkey was removed from your account',
    passkeyRemoved: 'The passkey no longer opens your account. Your account page shows what a sign-in requires now.',
    passkeyCopiedSubject: 'One of your passkeys may have been copied',
    passkeyCopied:
      'A passkey of your account was used, but its counter is behind the one that we have seen. There may be a copy of it. We refused the sign-in. If this happens again, remove the passkey and create a new one.',
    factorsResetSubject: 'The second factors of your account were removed',
    factorsReset:
      'The operator of this server removed the second factors of your account, as operators do for people who have lost theirs. Your password alone opens it now.',
    recoveryCodesMadeSubject: 'Your recovery codes were replaced',
    recoveryCodesMade: 'New recovery codes were created for your account. The previous ones no longer work.',
    recoveryCodeUsedSubject: 'A recovery code was used',
    recoveryCodeUsed:
      'One of the recovery codes of your account was used in place of your second factor, together with your password. It will not work again.',
    factorBlockedSubject: 'Someone entered wrong codes for your account',
    factorBlocked:
      'A sign-in to your account had the right password, but too many wrong codes. For an hour, no code is accepted.',
    appPasswordMadeSubject: 'An app password was created',
    appPasswordMade: 'Your account has a new app password. Anyone who has it can use your account.',
    appPasswordNamed: 'Your account has a new app password, called "{name}". Anyone who has it can use your account.',
    changedElsewhereSubject: 'Your identity was changed elsewhere',
    changedElsewhere:
      'Your identity was changed by an operation that did not come from this server. Your own wallet, or a server that you are moving to, also makes such changes.',
    changedElsewhereParts:
      'Your identity was changed by an operation that did not come from this server. It changed: {parts}. {undo} Your own wallet, or a server that you are moving to, also makes such changes.',
    partEnded: 'the identity itself, which has ended',
    partServer: 'the server of the account',
    partHandle: 'the handle',
    partSigningKey: 'the key that signs posts',
    partRotationKeys: 'the keys that may change the identity',
    partOther: 'other keys, services or names',
    partNone: 'nothing that still differs',
    undoNone: 'It was signed with the highest key of the identity, so no other key can undo it.',
    undoBy: 'Until {time}, a higher key of the identity can undo it: {keys}.',
    ownKeyAddedSubject: 'A key was added to your identity',
    ownKeyAdded:
      'A key was added to your identity, above all others. Anyone who has its secret key can move your account without this server. For three days, only a key that ranked above those of this server before could undo this.',
    ownKeyInDoubtSubject: 'A key may have been added to your identity',
    ownKeyInDoubt:
      'A key was being added to your identity, above all others, but the identity directory did not respond: it may have the key. Your account page shows the keys. Anyone who has the secret key can move your account without this server.',
    hostingBegunSubject: 'The document of your identity is now served here',
    hostingBegun:
      'This server now serves the document of your identity at your domain. While it does, anyone signed in to your account can change that document, and with it the keys and the server of your identity.',
    documentEditedSubject: 'The document of your identity was changed',
    documentEdited:
      'The document of your identity, which this server serves at your domain, was changed from a session of your account. It names the server of your account and the key that signs your posts.',
    signingKeyReplacedSubject: 'The signing key of your account was replaced',
    signingKeyReplaced:
      'The key that signs the posts of your account was replaced. This required a key of your identity. Nothing changes for your apps.',
    transferAcceptedSubject: 'A device is taking over your account',
    transferAccepted:
      'A device accepted the transfer of your account, with the code that your wallet showed. Once the transfer is completed, every app that is signed in with your password or your key is signed out.',
    transferCompletedSubject: 'Your account was transferred to another device',
    transferCompleted:
      'The transfer of your account to another device was completed. Every app that was signed in with your password or your key has been signed out. App passwords and apps that you authorized still work.',
    agentAsksSubject: 'A program requests access to your account',
    agentAsks:
      'A program has registered here and requests access to your account. It can do nothing until you enter the code that it shows.',
    agentAsksOf:
      'A program, which {issuer} says acts for you, has registered here and requests access to your account. It can do nothing until you enter the code that it shows.',
    agentConfirmedSubject: 'A program now has access to your account',
    agentConfirmed:
      'A program can now act for your account, because the code that it showed was entered. You can end its access at any time.',
    agentConfirmedNamed:
      'A program can now act for your account, because the code that it showed was entered. It calls itself "{name}". You can end its access at any time.',
    agentEndedSubject: 'A program no longer has access to your account',
    agentEnded:
      'The operator of this server ended the access of a program that acted for your account, or its request for access.',
    agentEndedNamed:
      'The operator of this server ended the access of a program that acted for your account, or its request for access. It calls itself "{name}".',
    agentRefusedSubject: 'A program was refused access to your account',
    agentRefused:
      'A program that requested access to your account was refused: its access was ended earlier, or someone else entered its code.',
    delegationOfferedSubject: 'You are invited to act for another account',
    delegationOffered:
      'Someone else invites you to act for their account. Your account page shows what you could do for it, and there you can accept or decline within seven days. Until you accept, nothing changes. If you do not know the account, decline the invitation or ignore it.',
    delegationOfferedBy:
      'The account "{name}" invites you to act for it. Your account page shows what you could do for it, and there you can accept or decline within seven days. Until you accept, nothing changes. If you do not know the account, decline the invitation or ignore it.',
    delegateAcceptedSubject: 'Someone now acts for your account',
    delegateAccepted:
      'The account that was invited accepted the invitation to act for your account. Your account page shows what it may do and what it did, and there you can end it at any time.',
    delegateAcceptedNamed:
      'The account "{name}" accepted the invitation to act for your account. Your account page shows what it may do and what it did, and there you can end it at any time.',
    delegationEndedSubject: 'Someone no longer acts for your account',
    delegationEnded: 'The operator of this server ended the access of an account that acted for yours.',
    deletionScheduledSubject: 'Your account is scheduled for deletion',
    deletionScheduled:
      'Your account is deactivated, and will be deleted after a while. To keep it, activate it again before then.',
    deletionScheduledAt:
      'Your account is deactivated, and will be deleted after {time}. To keep it, activate it again before then.',
    shareRotatedSubject: 'Your recovery share was replaced',
    shareRotated:
      'The share of your recovery key that this server holds was replaced. The new share works only with the other shares made at the same time.',
    shareDeletedSubject: 'Your recovery share was deleted',
    shareDeleted:
      'This server no longer holds a share of your recovery key. Without it, your identity can be recovered only with both of your own shares.',
    releaseOpenedSubject: 'Recovery of your account was requested',
    releaseOpenedNow:
      'Someone used a code that we emailed to you to request the share of your recovery key that this server holds. It can be collected from now on. Together with one of your other shares, it gives control of your identity.',
    releaseOpened:
      'Someone used a code that we emailed to you to request the share of your recovery key that this server holds. It can be collected from {time} on. Together with one of your other shares, it gives control of your identity.',
    releaseOpenedNowFormer:
      'This was the address of the account until recently. Someone used a code that was sent to its current address to request the share of its recovery key that this server holds. It can be collected from now on. Together with one of the other shares, it gives control of the identity.',
    releaseOpenedFormer:
      'This was the address of the account until recently. Someone used a code that was sent to its current address to request the share of its recovery key that this server holds. It can be collected from {time} on. Together with one of the other shares, it gives control of the identity.',
    shareReleasedSubject: 'Your recovery share was handed out',
    shareReleased:
      'The server handed out the share of your recovery key that it holds. Together with one of your other shares, from your keychain or from paper, it gives control of your identity.',
    shareReleasedFormer:
      'This was the address of the account until recently. The server handed out the share of its recovery key that it holds. Together with one of the other shares, it gives control of the identity.',
    signInSubject: 'New sign-in to your account',
    signInPassword: 'Someone signed in to your account with its password, from a new app, browser or network.',
    signInPasskey: 'Someone signed in to your account with a passkey, from a new app, browser or network.',
    signInWallet:
      'Someone signed in to your account with a wallet that holds a key of its identity, from a new app, browser or network.',
  },
  {
    de: async () => (await import('./notice-texts-de.ts')).noticeGerman,
    es: async () => (await import('./notice-texts-es.ts')).noticeSpanish,
    fr: async () => (await import('./notice-texts-fr.ts')).noticeFrench,
    ja: async () => (await import('./notice-texts-ja.ts')).noticeJapanese,
    'pt-BR': async () => (await import('./notice-texts-pt.ts')).noticeBrazilian,
  },
)

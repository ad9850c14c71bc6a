export const mailFrench = {
  subjectOn: '{subject} ({host})',
  about: 'Ce message concerne le compte {account} sur {host}.',
  accountPage: 'Votre compte : {page}',
  when: 'Quand : {time}',
  byOperator: 'Par : l’opérateur de ce serveur',
  program: 'Avec : {program}',
  unknownProgram: 'Avec : une application inconnue',
  network: 'Depuis : le réseau {network}',
  askOperator: 'Contactez l’opérateur de ce serveur.',
  writeOperator: 'Contactez l’opérateur de ce serveur : {address}.',
  confirmSubject: 'Confirmez votre adresse e-mail',
  confirmUse:
    'Utilisez ce code pour confirmer que cette adresse est la vôtre. Il fonctionne une seule fois, pendant {minutes} minutes :',
  confirmIgnore:
    'Si vous ne l’avez pas demandé, vous pouvez ignorer cet e-mail : quelqu’un a sans doute saisi votre adresse par erreur.',
  updateSubject: 'Changement d’adresse e-mail demandé',
  updateUse:
    'Utilisez ce code pour changer l’adresse de votre compte. Il fonctionne une seule fois, pendant {minutes} minutes :',
  intruder:
    'Si vous ne l’avez pas demandé, quelqu’un d’autre est connecté à votre compte : changez votre mot de passe.',
  intruderWithoutPassword:
    'Si vous ne l’avez pas demandé, quelqu’un d’autre est connecté à votre compte : fermez sur {page} toutes les sessions que vous ne reconnaissez pas.',
  resetSubject: 'Nouveau mot de passe demandé',
  resetUse:
    'Utilisez ce code pour définir un nouveau mot de passe. Il fonctionne une seule fois, pendant {minutes} minutes :',
  resetIgnore:
    'Un nouveau mot de passe déconnecte toutes les applications et tous les navigateurs. Si vous ne l’avez pas demandé, vous pouvez ignorer cet e-mail. Ne communiquez le code à personne.',
  deleteSubject: 'Suppression du compte demandée',
  deleteUse:
    'Si vous voulez pouvoir récupérer le compte plus tard, téléchargez d’abord vos données. Utilisez ce code pour supprimer définitivement votre compte. Il fonctionne une seule fois, pendant {minutes} minutes :',
  identitySubject: 'Changement d’identité demandé',
  identityUse:
    'Utilisez ce code pour modifier votre identité, par exemple pour transférer votre compte vers un autre serveur. Il fonctionne une seule fois, pendant {minutes} minutes :',
  identityIntruder:
    'Toute personne qui possède ce code peut s’emparer de votre compte. Si vous ne l’avez pas demandé, changez votre mot de passe.',
  identityIntruderWithoutPassword:
    'Toute personne qui possède ce code peut s’emparer de votre compte. Si vous ne l’avez pas demandé, fermez sur {page} toutes les sessions que vous ne reconnaissez pas.',
  signInSubject: 'Code de connexion',
  signInUse:
    'Utilisez ce code pour vous connecter à votre compte. Il fonctionne une seule fois, pendant {minutes} minutes :',
  signInIntruder:
    'Ne communiquez le code à personne. Si vous n’êtes pas en train de vous connecter, quelqu’un d’autre connaît votre mot de passe : changez-le.',
  signInIntruderWithoutPassword:
    'Ne communiquez le code à personne. Si vous n’êtes pas en train de vous connecter, quelqu’un d’autre connaît votre mot de passe : fermez sur {page} toutes les sessions que vous ne reconnaissez pas.',
  recoverySubject: 'Récupération du compte demandée',
  recoveryUse:
    'Quelqu’un a demandé la récupération de ce compte. Avec ce code, votre portefeuille demande la part de votre clé de récupération que ce serveur conserve. Il fonctionne une seule fois, pendant une heure.',
  recoveryCode: 'Code de récupération :',
  recoveryIgnore: 'Si vous ne l’avez pas demandé, vous pouvez ignorer cet e-mail. Ne communiquez le code à personne.',
  archiveSubject: 'Une archive de votre compte est prête',
  archiveReady:
    'Une nouvelle archive de votre compte est prête ({size}). Vous la trouverez sur {page}, où vous pouvez aussi changer la fréquence de création. Le serveur ne conserve que les plus récentes.',
  renamedSubject: 'Le serveur de votre compte a changé de nom',
  renamed: 'Le serveur de votre compte a changé de nom. C’était {former}, c’est désormais :',
  renamedPlc:
    'Votre identité indique encore l’ancienne adresse, et vous seul pouvez changer cela. Dans votre portefeuille, signez une opération qui fait de cette adresse le point d’accès du service atproto_pds.',
  renamedWeb:
    'Votre identité indique encore l’ancienne adresse, et vous seul pouvez changer cela. Dans le document que vous publiez pour votre did:web, indiquez cette adresse comme point d’accès du service #atproto_pds.',
  renamedApps:
    'Pour l’instant, votre compte fonctionne aux deux adresses. Les applications le trouveront à la nouvelle dès que votre identité l’indiquera, et vous demanderont de vous reconnecter.',
  quotaSubject: 'Votre compte est plein à {percent}',
  recordsFull:
    'Il contient {used} enregistrements sur {quota} au plus. Au-delà, les nouvelles publications, mentions J’aime et abonnements sont refusés. Ce que vous supprimez libère aussitôt de la place.',
  blobsFull:
    'Il contient {used} Mo de médias sur {quota} Mo au plus. Au-delà, les envois de fichiers sont refusés. Ce qu’aucune publication ne montre plus libère de la place après quelques heures.',
  quotaPage: '{page} indique combien vous stockez. Pour un quota plus élevé, contactez l’opérateur de ce serveur.',
  quotaPageWithAddress:
    '{page} indique combien vous stockez. Pour un quota plus élevé, contactez l’opérateur de ce serveur : {address}.',
  decisionSubject: 'Décision des modérateurs, dossier {seq}',
  decided: 'Les modérateurs de ce serveur ont pris une décision à son sujet. {done}',
  concerns: 'Elle concerne : {subject}',
  reason: 'Leur motif :',
  appeal:
    'Si vous pensez que c’est une erreur, vous pouvez répondre une fois, jusqu’au {time}. Une autre personne pourra alors réexaminer la décision :',
  caseNumber: 'Ceci est le dossier {seq}. {contact}',
  invitedSubject: 'Votre compte sur {host}',
  invited: 'Il y a de la place pour vous sur {host}, où vous avez demandé un compte.',
  inviteCode: 'Votre code d’invitation, valable pour un compte, est :',
  inviteUse: 'Inscrivez-vous sur {page}. Si vous n’avez pas demandé de compte, vous pouvez ignorer cet e-mail.',
  wantedSubject: 'Vous avez déjà un compte',
  wanted:
    'Quelqu’un a essayé d’utiliser cette adresse pour un autre compte sur {host}. Elle appartient à votre compte {account}, la demande a donc été refusée.',
  wantedPassword:
    'Si c’était vous, connectez-vous sur {page}, où vous pouvez aussi définir un nouveau mot de passe si vous avez oublié le vôtre. Si ce n’était pas vous, vous pouvez ignorer cet e-mail. Nous n’avons pas révélé que vous avez un compte.',
  wantedWallet:
    'Si c’était vous, connectez-vous sur {page} avec votre portefeuille. Si ce n’était pas vous, vous pouvez ignorer cet e-mail. Nous n’avons pas révélé que vous avez un compte.',
} as const

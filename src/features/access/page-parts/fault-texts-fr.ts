export const faultFrench = {
  elsewhere:
    'Vous vous êtes connecté ou déconnecté dans un autre onglet depuis l’affichage de cette page. Veuillez vérifier le compte, puis décider à nouveau.',
  handleChars:
    'Un pseudo se compose de lettres, de chiffres et de traits d’union, et ne commence ni ne finit par un trait d’union.',
  handleEnding: 'Un pseudo ne peut pas avoir cette terminaison. Veuillez en choisir un autre.',
  handleWord: 'Ce pseudo contient un mot qui n’est pas autorisé ici. Veuillez en choisir un autre.',
  handleDots: 'Sous notre domaine, un pseudo se compose de lettres, de chiffres et de traits d’union, sans points.',
  handleLong: 'Ce pseudo est trop long. Veuillez utiliser au plus 63 caractères avant le point.',
  handleShort: 'Ce pseudo est trop court. Veuillez utiliser au moins trois caractères.',
  handleReserved: 'Ce pseudo est réservé. Veuillez en choisir un autre.',
  handleTaken: 'Ce pseudo est déjà pris. Veuillez en choisir un autre.',
  handleOwnDomain:
    'Un nouveau compte reçoit un pseudo sous notre propre domaine. Une fois le compte créé, vous pourrez passer à votre propre domaine.',
  handleUnresolved:
    'Ce domaine ne pointe pas encore vers votre compte. Publiez l’enregistrement ou le fichier ci-dessous, puis vérifiez à nouveau.',
  handleNotInDocument: 'Votre document DID ne mentionne pas ce pseudo. Veuillez d’abord l’y ajouter, puis réessayer.',
  handleUnusable: 'Ce pseudo ne peut pas être utilisé. Veuillez en choisir un autre.',
  handleTakenOrReserved: 'Ce pseudo est déjà pris ou réservé. Veuillez en choisir un autre.',
  signUpLate:
    'Cela a pris trop de temps, ou une autre tentative a eu lieu entre-temps. Veuillez essayer de vous connecter. Si c’est impossible, inscrivez-vous à nouveau.',
  emailMissing: 'Veuillez saisir votre adresse e-mail.',
  emailTaken: 'Cette adresse e-mail appartient à un autre compte de ce serveur. Veuillez en utiliser une autre.',
  emailUnusable:
    'Cette adresse e-mail ne peut pas être utilisée. Veuillez vérifier sa saisie, ou en utiliser une autre. Si elle a déjà un compte ici, nous lui avons envoyé un e-mail.',
  emailChanged: 'Votre adresse a changé depuis l’affichage de cette page. Veuillez rouvrir la page.',
  emailNone: 'Votre compte n’a pas d’adresse e-mail. Veuillez d’abord en ajouter une.',
  passwordMissing: 'Veuillez choisir un mot de passe.',
  passwordShort: 'Ce mot de passe est trop court. Veuillez utiliser au moins {chars} caractères.',
  passwordLong: 'Ce mot de passe est trop long. Veuillez en choisir un plus court.',
  passwordNotCurrent:
    'Ce n’est pas votre mot de passe actuel. Les mots de passe d’application ne fonctionnent pas ici.',
  passwordUnusable: 'Ce mot de passe ne peut pas être utilisé. Veuillez en choisir un autre.',
  questionWrong: 'La question a une autre réponse. Si vous ne la connaissez pas, demandez à l’opérateur de ce serveur.',
  workMissing:
    'Votre navigateur n’a pas effectué les calculs que cette page demande, ou il y a trop longtemps. Veuillez réessayer, avec JavaScript.',
  walletKey:
    'Ce n’est pas la clé publique d’un portefeuille. Elle commence par did:key:z et compte environ soixante caractères.',
  inviteMissing: 'L’inscription ici nécessite un code d’invitation. Veuillez saisir le vôtre.',
  inviteInvalid: 'Ce code d’invitation n’est pas valide, ou a déjà été utilisé. Veuillez vérifier sa saisie.',
  nameMissing: 'Veuillez saisir un nom de 255 caractères au plus.',
  appPasswordTaken: 'Vous avez déjà un mot de passe d’application de ce nom. Veuillez choisir un autre nom.',
  appPasswordsFull:
    'Vous avez atteint le nombre maximal de mots de passe d’application. Veuillez en révoquer un que vous n’utilisez plus.',
  documentNone:
    'Votre domaine ne publie aucun document qui pourrait être servi ici. Publiez-le d’abord là-bas, puis réessayez.',
  documentPath: 'Seule une identité qui est un domaine entier, sans chemin, peut être servie ici.',
  alreadyHere:
    'Votre compte est déjà ici. Si votre transfert a commencé, connectez-vous ici avec le pseudo et le mot de passe que vous avez choisis.',
  identityUnreadable: 'Votre identité ne peut pas être lue pour le moment. Veuillez réessayer plus tard.',
  identityElsewhere:
    'Votre identité n’est pas sous le contrôle de ce serveur. Si vous êtes passé à un autre serveur, connectez-vous là-bas.',
  identityOtherServer: 'Votre identité désigne un autre serveur. Si vous y êtes passé, connectez-vous là-bas.',
  identityOtherKey:
    'Votre identité désigne une clé de signature que ce serveur ne détient pas. Le détenteur de votre clé de récupération peut corriger cela.',
  tooManyMinute: 'Trop de tentatives. Veuillez patienter une minute, puis réessayer.',
  tooMany: 'Trop de tentatives. Veuillez patienter quelques minutes, puis réessayer.',
  codeWrong: 'Ce code est incorrect. Veuillez le vérifier, ou en utiliser un nouveau.',
  codeExpired: 'Ce code a expiré. Veuillez en demander un nouveau.',
  factorWanted:
    'L’ancien serveur demande un code, qu’il vous a envoyé par e-mail. Veuillez le saisir avec le mot de passe.',
  mailRefused:
    'Le serveur de messagerie a refusé l’e-mail, qui n’a pas été envoyé. Veuillez vérifier l’adresse e-mail du compte.',
  mailLater: 'L’e-mail n’a pas encore pu être envoyé. Il arrivera dès que le serveur de messagerie l’acceptera.',
  upstream: 'Un service nécessaire ne répond pas. Rien n’a été modifié. Veuillez réessayer dans un instant.',
  signInMissing: 'Veuillez saisir votre pseudo ou votre adresse e-mail, et votre mot de passe.',
  signInWrong: 'Le compte ou le mot de passe est incorrect. Les mots de passe d’application ne fonctionnent pas ici.',
  takenDown: 'Ce compte a été suspendu. Veuillez contacter l’opérateur de ce serveur.',
  delegateUnknown: 'Ce n’est pas le pseudo d’un compte actif sur ce serveur.',
  delegateSelf: 'C’est votre propre compte.',
  delegateKnown: 'Ce compte agit déjà pour le vôtre, ou y est invité.',
  delegatesFull:
    'Le nombre maximal de personnes agissant pour un compte est atteint. Veuillez d’abord mettre fin à l’accès de l’une d’elles.',
  invitationOver: 'Cette invitation n’est plus ouverte.',
  endPassed: 'Veuillez choisir un jour qui n’est pas passé.',
  keyKnown: 'Votre identité possède déjà cette clé.',
  deletionRefused: 'Le code ou le mot de passe est incorrect. Veuillez vérifier les deux.',
  deletionIncomplete: 'Veuillez saisir le code reçu par e-mail et votre mot de passe.',
  scopeUnknown: 'L’un de ces scopes est inconnu, ou réservé au compte lui-même. Veuillez le corriger ou le retirer.',
  factorMailed:
    'Votre compte ici demande un second facteur. Nous vous avons envoyé un code par e-mail : veuillez le saisir avec le mot de passe.',
  factorApp:
    'Votre compte ici demande un second facteur. Veuillez saisir un code de votre application d’authentification, ou un code de récupération.',
  tooManyCodes: 'Trop de codes incorrects. Veuillez patienter une heure, puis réessayer.',
  uploadBroken: 'L’envoi s’est interrompu. Rien n’a été modifié. Veuillez réessayer.',
  uploadTwice: 'Veuillez choisir un seul fichier.',
  archiveForeign: 'C’est l’archive d’un autre compte. Veuillez en choisir une du vôtre.',
  uploadLarge: 'Ce fichier est plus volumineux que ce que ce serveur accepte pour votre compte.',
  uploadSlow: 'L’envoi était trop lent, et le serveur y a mis fin. Veuillez réessayer avec une meilleure connexion.',
  passkeyRefused: 'Cette clé d’accès n’a pas été acceptée. Veuillez réessayer ou vous connecter autrement.',
  passkeyLate: 'Cela a pris trop de temps. Veuillez utiliser à nouveau votre clé d’accès.',
  passkeyTaken: 'Cette clé d’accès est déjà utilisée. Veuillez utiliser un autre appareil ou une autre clé d’accès.',
  passkeysFull:
    'Vous avez atteint le nombre maximal de clés d’accès. Veuillez en supprimer une dont vous ne vous servez plus.',
  passkeyCopied:
    'Cette clé d’accès a indiqué un ancien compteur : il en existe peut-être une copie. Veuillez vous connecter autrement et remplacer la clé d’accès.',
  passkeyOther:
    'Cette clé d’accès appartient à un autre compte. Veuillez en utiliser une du compte que vous avez choisi.',
  factorRecovery:
    'Votre compte ici se connecte avec une clé d’accès. Veuillez saisir l’un de ses codes de récupération.',
  signInLate: 'Cela a pris trop de temps. Veuillez vous reconnecter.',
  accountUnknown: 'Il n’y a aucun compte avec ce pseudo ou ce DID.',
  plcOnly: 'Seule une identité qui commence par did:plc: peut être transférée avec une clé seule.',
  keyNotNamed: 'Votre identité ne cite pas cette clé parmi ses clés de rotation. Veuillez en saisir une qu’elle cite.',
  secretKey:
    'Ce n’est pas une clé secrète qui peut signer. Elle commence par z et compte environ cinquante caractères.',
  signature:
    'Veuillez saisir la clé secrète de l’une des clés de rotation de votre identité, ou l’opération exactement telle qu’affichée, signée par une telle clé.',
  shownAgain: 'Ce que devient votre identité n’est pas ce qui vous a été montré : revoyez ses clés.',
} as const

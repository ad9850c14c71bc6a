export const noticeFrench = {
  handleChangedSubject: 'Votre pseudo a été modifié',
  handleChanged: 'Le pseudo de votre compte est désormais {handle}.',
  handleUnpublished:
    'Le pseudo de votre compte est désormais {handle}. Votre portefeuille doit l’ajouter à votre identité, car seule votre propre clé peut la modifier. D’ici là, les autres voient le compte sans pseudo valide.',
  handleRemovedSubject: 'Un pseudo a été retiré de votre compte',
  handleRemoved: 'Votre compte n’a plus le pseudo {handle}.',
  emailChangedSubject: 'Votre adresse e-mail a été modifiée',
  emailChanged:
    'Votre compte a désormais une autre adresse e-mail. Ce message va à votre ancienne adresse ; les suivants iront à la nouvelle.',
  passwordChangedSubject: 'Votre mot de passe a été modifié',
  passwordChanged:
    'Votre compte a un nouveau mot de passe. Toutes les sessions ouvertes avec l’ancien ont été fermées.',
  passwordResetSubject: 'Votre mot de passe a été réinitialisé',
  passwordReset:
    'Un nouveau mot de passe a été défini avec un code que nous vous avons envoyé par e-mail. Toutes les applications, tous les navigateurs et tous les programmes ont perdu leur accès.',
  emailFactorOnSubject: 'La connexion demande désormais un code reçu par e-mail',
  emailFactorOn:
    'Désormais, une connexion avec votre mot de passe demande aussi un code que nous vous envoyons par e-mail. Les mots de passe d’application fonctionnent sans code.',
  emailFactorOffSubject: 'La connexion ne demande plus de code reçu par e-mail',
  emailFactorOff:
    'Votre mot de passe suffit à nouveau pour ouvrir votre compte : nous ne demandons plus de code envoyé par e-mail.',
  totpAddedSubject: 'Une application d’authentification a été ajoutée à votre compte',
  totpAdded:
    'Désormais, une connexion avec votre mot de passe demande aussi un code de l’application ou l’un de vos codes de récupération. Les mots de passe d’application fonctionnent sans code.',
  totpRemovedSubject: 'L’application d’authentification a été retirée de votre compte',
  totpRemoved:
    'La connexion ne demande plus de code de l’application, et les codes de récupération ne sont plus valables.',
  passkeyAddedSubject: 'Une clé d’accès a été ajoutée à votre compte',
  passkeyAdded:
    'Quiconque possède l’appareil où se trouve la clé d’accès, avec son code PIN, un doigt ou un visage, peut se connecter à votre compte. Désormais, une connexion avec votre mot de passe demande aussi la clé d’accès ou l’un de vos codes de récupération. Les mots de passe d’application fonctionnent sans elle.',
  passkeyRemovedSubject: 'Une clé d’accès a été retirée de votre compte',
  passkeyRemoved:
    'La clé d’accès n’ouvre plus votre compte. La page de votre compte indique ce qu’une connexion demande désormais.',
  passkeyCopiedSubject: 'L’une de vos clés d’accès a peut-être été copiée',
  passkeyCopied:
    'Une clé d’accès de votre compte a été utilisée, mais elle a indiqué moins d’utilisations que nous n’en connaissons. Il en existe peut-être une copie. Nous avons refusé la connexion. Si cela se reproduit, retirez la clé d’accès et créez-en une autre.',
  factorsResetSubject: 'Les seconds facteurs de votre compte ont été retirés',
  factorsReset:
    'L’opérateur de ce serveur a retiré les seconds facteurs de votre compte, comme pour une personne qui les a perdus. Votre mot de passe suffit désormais pour l’ouvrir.',
  recoveryCodesMadeSubject: 'Vos codes de récupération ont été remplacés',
  recoveryCodesMade:
    'De nouveaux codes de récupération ont été créés pour votre compte. Les précédents ne sont plus valables.',
  recoveryCodeUsedSubject: 'Un code de récupération a été utilisé',
  recoveryCodeUsed:
    'L’un des codes de récupération de votre compte a été utilisé à la place de votre second facteur, avec votre mot de passe. Il ne pourra plus servir.',
  factorBlockedSubject: 'Quelqu’un a saisi des codes incorrects pour votre compte',
  factorBlocked:
    'Une connexion à votre compte avait le bon mot de passe, mais trop de codes incorrects. Pendant une heure, aucun code n’est accepté.',
  appPasswordMadeSubject: 'Un mot de passe d’application a été créé',
  appPasswordMade:
    'Votre compte a un nouveau mot de passe d’application. Quiconque le possède peut utiliser votre compte.',
  appPasswordNamed:
    'Votre compte a un nouveau mot de passe d’application, nommé « {name} ». Quiconque le possède peut utiliser votre compte.',
  changedElsewhereSubject: 'Votre identité a été modifiée ailleurs',
  changedElsewhere:
    'Votre identité a été modifiée par une opération qui ne vient pas de ce serveur. Votre propre portefeuille, ou un autre serveur vers lequel vous partez, fait aussi de telles opérations.',
  changedElsewhereParts:
    'Votre identité a été modifiée par une opération qui ne vient pas de ce serveur. Ont changé : {parts}. {undo} Votre propre portefeuille, ou un autre serveur vers lequel vous partez, fait aussi de telles opérations.',
  partEnded: 'l’identité elle-même, qui a pris fin',
  partServer: 'le serveur du compte',
  partHandle: 'le pseudo',
  partSigningKey: 'la clé qui signe les publications',
  partRotationKeys: 'les clés qui peuvent changer l’identité',
  partOther: 'd’autres clés, services ou noms',
  partNone: 'rien qui soit encore différent',
  undoNone: 'Elle a été signée avec la clé la plus haute de l’identité : aucune autre clé ne peut l’annuler.',
  undoBy: 'Jusqu’au {time}, une clé plus haute de l’identité peut l’annuler : {keys}.',
  ownKeyAddedSubject: 'Une clé a été ajoutée à votre identité',
  ownKeyAdded:
    'Une clé a été ajoutée à votre identité, au-dessus de toutes les autres. Quiconque possède sa clé secrète peut transférer votre compte sans ce serveur. Pendant trois jours, seule une clé qui était déjà au-dessus de celles de ce serveur pourrait l’annuler.',
  ownKeyInDoubtSubject: 'Une clé a peut-être été ajoutée à votre identité',
  ownKeyInDoubt:
    'Une clé devait être ajoutée à votre identité, au-dessus de toutes les autres, et l’annuaire des identités n’a pas répondu : il a peut-être la clé. La page de votre compte montre les clés. Quiconque possède la clé secrète peut transférer votre compte sans ce serveur.',
  hostingBegunSubject: 'Le document de votre identité est désormais servi ici',
  hostingBegun:
    'Ce serveur sert désormais le document de votre identité à l’adresse de votre domaine. Tant que c’est le cas, toute personne connectée à votre compte peut modifier ce document et, avec lui, les clés et le serveur de votre identité.',
  documentEditedSubject: 'Le document de votre identité a été modifié',
  documentEdited:
    'Le document de votre identité, que ce serveur sert à l’adresse de votre domaine, a été modifié depuis une session de votre compte. Il indique le serveur de votre compte et la clé qui signe vos publications.',
  signingKeyReplacedSubject: 'La clé de signature de votre compte a été remplacée',
  signingKeyReplaced:
    'La clé qui signe les publications de votre compte a été remplacée. Il a fallu pour cela une clé de votre identité. Rien ne change pour vos applications.',
  transferAcceptedSubject: 'Un appareil va prendre en charge votre compte',
  transferAccepted:
    'Un appareil a accepté le transfert de votre compte, avec le code que votre portefeuille a affiché. Une fois le transfert terminé, toutes les applications connectées avec votre mot de passe ou votre clé seront déconnectées.',
  transferCompletedSubject: 'Votre compte a été transféré vers un autre appareil',
  transferCompleted:
    'Le transfert de votre compte vers un autre appareil est terminé. Toutes les applications connectées avec votre mot de passe ou votre clé ont été déconnectées. Les mots de passe d’application et les applications que vous avez autorisées fonctionnent toujours.',
  agentAsksSubject: 'Un programme demande l’accès à votre compte',
  agentAsks:
    'Un programme s’est enregistré ici et demande l’accès à votre compte. Il ne peut rien faire tant que vous n’avez pas saisi le code qu’il affiche.',
  agentAsksOf:
    'Un programme qui, selon {issuer}, agit pour vous s’est enregistré ici et demande l’accès à votre compte. Il ne peut rien faire tant que vous n’avez pas saisi le code qu’il affiche.',
  agentConfirmedSubject: 'Un programme a désormais accès à votre compte',
  agentConfirmed:
    'Un programme peut désormais agir pour votre compte, car le code qu’il a affiché a été saisi. Vous pouvez mettre fin à son accès à tout moment.',
  agentConfirmedNamed:
    'Un programme peut désormais agir pour votre compte, car le code qu’il a affiché a été saisi. Il se présente comme « {name} ». Vous pouvez mettre fin à son accès à tout moment.',
  agentEndedSubject: 'Un programme n’a plus accès à votre compte',
  agentEnded:
    'L’opérateur de ce serveur a mis fin à l’accès d’un programme qui agissait pour votre compte, ou à sa demande d’accès.',
  agentEndedNamed:
    'L’opérateur de ce serveur a mis fin à l’accès d’un programme qui agissait pour votre compte, ou à sa demande d’accès. Il se présente comme « {name} ».',
  agentRefusedSubject: 'L’accès à votre compte a été refusé à un programme',
  agentRefused:
    'Un programme qui demandait l’accès à votre compte a été refusé : son accès avait pris fin auparavant, ou une autre personne a saisi son code.',
  delegationOfferedSubject: 'Vous êtes invité à agir pour un autre compte',
  delegationOffered:
    'Le compte d’une autre personne vous invite à agir pour lui. La page de votre compte montre ce que vous pourriez faire pour lui ; vous pouvez y accepter ou refuser pendant sept jours. Tant que vous n’acceptez pas, rien ne change. Si vous ne connaissez pas ce compte, refusez l’invitation ou ignorez-la.',
  delegationOfferedBy:
    'Le compte « {name} » vous invite à agir pour lui. La page de votre compte montre ce que vous pourriez faire pour lui ; vous pouvez y accepter ou refuser pendant sept jours. Tant que vous n’acceptez pas, rien ne change. Si vous ne connaissez pas ce compte, refusez l’invitation ou ignorez-la.',
  delegateAcceptedSubject: 'Quelqu’un agit désormais pour votre compte',
  delegateAccepted:
    'Le compte invité a accepté d’agir pour le vôtre. La page de votre compte montre ce qu’il peut faire et ce qu’il a fait ; vous pouvez y mettre fin à tout moment.',
  delegateAcceptedNamed:
    'Le compte « {name} » a accepté l’invitation à agir pour le vôtre. La page de votre compte montre ce qu’il peut faire et ce qu’il a fait ; vous pouvez y mettre fin à tout moment.',
  delegationEndedSubject: 'Quelqu’un n’agit plus pour votre compte',
  delegationEnded: 'L’opérateur de ce serveur a mis fin à l’accès d’un compte qui agissait pour le vôtre.',
  deletionScheduledSubject: 'La suppression de votre compte est programmée',
  deletionScheduled:
    'Votre compte est désactivé et sera supprimé après un certain temps. Pour le conserver, réactivez-le avant.',
  deletionScheduledAt:
    'Votre compte est désactivé et sera supprimé après le {time}. Pour le conserver, réactivez-le avant.',
  shareRotatedSubject: 'Votre part de récupération a été remplacée',
  shareRotated:
    'La part de votre clé de récupération que ce serveur conserve a été remplacée. La nouvelle part ne fonctionne qu’avec les autres parts créées en même temps.',
  shareDeletedSubject: 'Votre part de récupération a été supprimée',
  shareDeleted:
    'Ce serveur ne conserve plus de part de votre clé de récupération. Sans elle, votre identité ne peut être récupérée qu’avec vos deux propres parts.',
  releaseOpenedSubject: 'La récupération de votre compte a été demandée',
  releaseOpenedNow:
    'Quelqu’un a utilisé un code que nous vous avons envoyé par e-mail pour demander la part de votre clé de récupération que ce serveur conserve. Elle peut être retirée dès maintenant. Avec l’une de vos autres parts, elle donne le contrôle de votre identité.',
  releaseOpened:
    'Quelqu’un a utilisé un code que nous vous avons envoyé par e-mail pour demander la part de votre clé de récupération que ce serveur conserve. Elle peut être retirée à partir du {time}. Avec l’une de vos autres parts, elle donne le contrôle de votre identité.',
  releaseOpenedNowFormer:
    'C’était l’adresse du compte jusqu’à récemment. Quelqu’un a utilisé un code envoyé à l’adresse actuelle pour demander la part de la clé de récupération que ce serveur conserve. Elle peut être retirée dès maintenant. Avec l’une des autres parts, elle donne le contrôle de l’identité.',
  releaseOpenedFormer:
    'C’était l’adresse du compte jusqu’à récemment. Quelqu’un a utilisé un code envoyé à l’adresse actuelle pour demander la part de la clé de récupération que ce serveur conserve. Elle peut être retirée à partir du {time}. Avec l’une des autres parts, elle donne le contrôle de l’identité.',
  shareReleasedSubject: 'Votre part de récupération a été remise',
  shareReleased:
    'Le serveur a remis la part de votre clé de récupération qu’il conservait. Avec l’une de vos autres parts, dans votre trousseau ou sur papier, elle donne le contrôle de votre identité.',
  shareReleasedFormer:
    'C’était l’adresse du compte jusqu’à récemment. Le serveur a remis la part de la clé de récupération qu’il conservait. Avec l’une des autres parts, elle donne le contrôle de l’identité.',
  signInSubject: 'Nouvelle connexion à votre compte',
  signInPassword:
    'Quelqu’un s’est connecté à votre compte avec son mot de passe, depuis une application, un navigateur ou un réseau que nous ne connaissions pas.',
  signInPasskey:
    'Quelqu’un s’est connecté à votre compte avec une clé d’accès, depuis une application, un navigateur ou un réseau que nous ne connaissions pas.',
  signInWallet:
    'Quelqu’un s’est connecté à votre compte avec un portefeuille qui détient une clé de son identité, depuis une application, un navigateur ou un réseau que nous ne connaissions pas.',
} as const

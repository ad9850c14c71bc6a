/**
 * First labels of handles that are reserved unless the operator has a list of their own. Under a domain that offers
 * handles, each of them would be taken for something else: a host, a mailbox, a page or the account of a well-known
 * person.
 *
 * The last three groups are what the reference PDS reserves (packages/pds/src/handle/reserved.ts, @atproto/pds 0.5.35),
 * without what cannot be a handle.
 */

/** Host names that are commonly in use on the same domain as handles. */
const HOSTS =
  'about admin api app auth blog cdn did docs email help identitywallet mail ns1 ns2 oauth pds plc relay root smtp static status xrpc'

/** RFC 2142: mail to such a name at a domain is meant for the domain's operator. */
const MAILBOXES =
  'abuse ftp hostmaster info marketing news noc postmaster sales security support usenet uucp webmaster www'

/** Words of the protocol and of its first application. */
const PROTOCOL = 'atp bluesky bsky handle lex lexicon nsid repo tid'

/** Words for services, pages and roles. */
const SERVICES = `
  access account accounts acme activate activities activity add address adm admanager administration administrator
  administrators admins ads adsense adult advertising adwords affiliate affiliatepage affiliates afp ajax all alpha
  analysis analytics android anon anonymous answer answers apis appengine appnews apps archive archives article asdf
  asset assets authentication avatar backup bank banner banners base beginners beta billing bin binaries binary
  blackberry blogs blogsearch board book bookmark bookmarks books bot bots bug bugs business buy buzz cache calendar
  call campaign cancel captcha career careers cart catalog catalogs categories category cgi cgi-bin changelog chart
  charts chat check checked checking checkout client cliente clients clients1 cnarne code comercial comment comments
  communities community company compare compras config configuration confirm confirmation connect contact contact-us
  contacts contactus content contest contribute contributor contributors coppa copyright copyrights core corp
  countries country cpanel create css cssproxy customise customize dashboard data default delete demo design designer
  desktop destroy dev devel developer developers devs diagram diary dict dictionary die dir direct-messages directory
  dist diversity dmca doc documentation documentations documents domain domains donate download downloads e-mail earth
  ecommerce edit editor edits edu education embed embedded employment employments empty enable encrypted end engine
  enterprise enterprises entries entry error errorlog errors eval event example examplecommunity exampleopenid
  examplesyn examplesyndicated exampleusername exchange exit explore faq faqs favorite favorites favourite favourites
  feature features feed feedback feedburner feedproxy feeds file files finance first folder folders following forgot
  form forms forum forums founder free friend friends fuck fun fusion gadget gadgets game games gears general
  geographic get gettingstarted gift gifts gist git github gmail golang goto gov graph graphs group groups guest
  guests guide guides hack hacks head home homepage host hosting hostname how-to howto html htrnl http httpd https
  iamges icon icons idea ideas imac image images imap img inbox inboxes index indexes information inquiry intranet
  investor investors invitation invitations invite invoice invoices ios ipad iphone irc irnages irng issue issues item
  items java javascript job jobs join json jump knowledge-base knowledgebase lab labs language languages last
  ldap-status ldapstatus legal license licenses link links linux list lists livejournal local locale location log
  log-in log-out login logout logs mac mac-os mac-os-x macos macosx mailer mailing main maintenance manage manager
  manual map maps master media member members memories memory merchandise message messages messenger microblog
  microblogs mine mis misc mms mob mobile model models money movie movies mp3 mp4 msg msn music mymme mysql name named
  nan navi navigation net network networks new newsletter nick nickname nil none notes noticias notification
  notifications notify ns3 ns4 ns5 null oauth-clients ocsp offer offers official old online openid operator option
  options order orders org organization organizations other overview owner owners p0rn pack page pager pages paid
  panel partner partnerpage partners password patch pay payment people perl person phone photo photoalbum photos php
  phpmyadmin phppgadmin phpredisadmin pic pics picture pictures ping pixel places plan plans plugin plugins podcasts
  policies policy pop pop3 popular porn portal portals post postfix posts pr0n premium press price pricing principles
  print privacy privacy-policy privacypolicy private prod product production products profile profiles project
  projects promo promotions proxies proxy pub public purchase purpose put python queries query radio random ranking
  read reader readme recent recruit recruitment redirect register registration release remove replies report reports
  repositories repository req request requests research reset resolve resolver review rnail rnicrosoft roc rss ruby
  rule sag sale sample samples sandbox save scholar school schools script scripts search secure self seminars send
  server server-info server-status servers service services session sessions setting settings setup share shop
  shopping shortcut shortcuts show sign-in sign-up signin signout signup site sitemap sitemaps sitenews sites sketchup
  sky slash slashinvoice slut smartphone sms soap software sorry source spec special spreadsheet spreadsheets sql src
  srntp ssh ssl ssladmin ssladministrator sslwebmaster ssytem staff stage staging start stat state statistics stats
  store stores stories style styleguide styles stylesheet stylesheets subdomain subscribe subscription subscriptions
  suggest suggestqueries survey surveys surveytool svn swf syn sync syndicated sys sysadmin sysadministrator sysadmins
  system tablet tablets tag tags talk talkgadget task tasks team teams tech telnet term terms terms-of-service
  termsofservice test testing tests text theme themes thread threads ticket tickets tmp to-do todo toml tool toolbar
  toolbars tools top topic topics tos tour trac trace translate translation translations translator trends tutorial
  tux twitter txt undef unfollow unsubscribe update updates upgrade upgrades upi upload uploads url usage user
  username usernames users uuid validation validations ver version video video-stats videos visitor visitors voice
  volunteer volunteers watch wave weather web webdisk webhook webhooks webmail webmasters webrnail website websites
  welcome whm whois widget widgets wifi wiki wikis win windows word work works workshop wpad wws wwws wwww xfn xhtml
  xhtrnl xml xmpp xpg xxx yaml year yml you yourdomain yourname yoursite yourusername`

/** Names under which known people and organisations are found elsewhere. */
const KNOWN_ACCOUNTS = `
  10downingstreet 10ronaldinho 3gerardpique aclu adele akshaykumar aliaa08 aliciakeys amitshah andresiniesta8
  anushkasharma aoc arianagrande ariyoshihiroiki arrahman arvindkejriwal asahi avrillavigne barackobama bbcbreaking
  bbcworld beingsalmankhan beyonce billgates billieeilish brasildefato britneyspears brunomars carterjwm
  championsleague chrisbrown claudialeitte cnnbrk coldplay conanobrien correio cristiano danieltosh davidguetta
  ddlovato deepikapadukone drake dril elisapie ellendegeneres elonmusk eminem emmawatson estadao fcbarcelona folha
  foxnews fujitv gazetadopovo gigazine gretathunberg hajimesyacho hikakin hillaryclinton iamsrk ihrithik imvkohli
  instagram ivetesangalo jairbolsonaro jimmyfallon jlo jocx joebiden jornaldobrasil jornaloglobo jotx jtimberlake
  justinbieber kaka kamalaharris kanyewest katyperry kendalljenner kevinhart4real khloekardashian kimkardashian
  kingjames kourtneykardash kyliejenner ladygaga leomessi liampayne liltunechi lucianohuck lulaoficial mainichi manutd
  marcosmion mariahcarey mileycyrus mohamadalarefe naomiosaka narendramodi nasa natgeo nba neymarjr nfl nhk
  niallofficial nickiminaj nike nikkei nintendo npr ntv nytimes onedirection oowareware1945 oprah pamyurin paulocoelho
  pink pitbull playstation pmoindia portalr7 potus premierleague priyankachopra realdonaldtrump rihanna rolaworld
  rondesantisfl seikintv selenagomez shakira shawnmendes snoopdogg sportscenter srbachchan starbucksjapan
  subhisharma100 taylorswift taylorswift13 tbs theeconomist therock tvasahi tvtokyo ukraine virendersehwag
  washingtonpost whitehouse45 wizkhalifa yokoono yousuck2020 youtube zaynmalik zelenskyyua zerohora`

/** Returns them sorted, each once. */
export const reservedLabels = (): string[] =>
  [
    ...new Set([HOSTS, MAILBOXES, PROTOCOL, SERVICES, KNOWN_ACCOUNTS].flatMap((group) => group.trim().split(/\s+/))),
  ].toSorted()

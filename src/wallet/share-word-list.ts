/**
 * The word of each byte, in the order of the bytes. Other wallets write shares with the same list, so it never changes.
 */
export const shareWordList: readonly string[] = `
  able acid aged army atom aunt axis baby back bake bald ball band bank barn base
  bath bead beam bean bear beat bell belt bird bite blue boat body bold bone book
  boot born boss both bowl cage cake calm camp cane card care cart cash cave cell
  chef chin city clay club coal coat code coin cold colt cook cool cord corn cost
  crab crew crop cube cure dark dawn deal deer desk dime dirt dish dive dock doll
  dome door dove drum duck dune dust duty earn east easy edge envy epic even face
  fact fade fair fall farm fast fate fawn fear feed felt fern film fire fish five
  flag flap flat flax fled flew flip flow foam foil fold font food foot ford fork
  form fort four frog fuel full fund fury gain gala game gate gaze gear gems gift
  girl give glad glow glue goal goat gold golf gone good gown grab gray grew grid
  grim grip grow gulf hail hair half hall hand hang harp hawk haze head heal heap
  heat herb herd hero hide hill hint hive hold hole holy home hood hoof hook hope
  horn host hour hunt hurl icon idea iris iron item jade jail jazz jean joke jolt
  july jump junk jury keel keen kelp kilt king kite knee knot lace lake lamb lamp
  land lane lark lava lawn lead leaf leak lean leap left lend lens lily lime line
  link lion list load loaf loan lock loft logo lone long look loop lord lose loud
`
  .trim()
  .split(/\s+/)

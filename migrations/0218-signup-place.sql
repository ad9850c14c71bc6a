-- From where accounts were made in the last day, while signup.accounts_per_range_and_day limits that.
CREATE TABLE signup_place (
  -- /24 of IPv4, /48 of IPv6.
  network TEXT NOT NULL,
  at INTEGER NOT NULL
);
CREATE INDEX signup_place_network ON signup_place (network, at);
CREATE INDEX signup_place_at ON signup_place (at);

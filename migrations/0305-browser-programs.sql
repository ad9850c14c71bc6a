-- The browser and its system that signed in, such as "Firefox on Linux"; empty if it is none that is known, NULL for
-- browsers from before. The cookie is good in no other.
ALTER TABLE oauth_device ADD COLUMN program TEXT;

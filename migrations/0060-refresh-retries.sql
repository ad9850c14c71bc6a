-- Within its grace an exchanged refresh token is answered as often as it is sent.
ALTER TABLE oauth_session DROP COLUMN was_retried;

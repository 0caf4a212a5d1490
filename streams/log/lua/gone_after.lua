-- Finds where a reader goes on who came upon what went.
-- KEYS[1] gone
-- ARGV[1] start: offset
-- returns: the first offset from there on that did not go
-- flags: no-writes
-- include: gone
local gone, start = KEYS[1], tonumber(ARGV[1])

return gone_next(gone, start)

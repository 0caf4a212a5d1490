-- Finds where a reader goes on who came, going back, upon what went.
-- KEYS[1] gone
-- ARGV[1] first: offset at which the look ends
-- ARGV[2] stop: offset
-- returns: one after the last offset from first on and below stop that did not go; first where all of them did
-- flags: no-writes
-- include: gone
local gone, first, stop = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])

return gone_trim(gone, first, stop)

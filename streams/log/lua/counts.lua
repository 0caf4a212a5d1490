-- Counts what went from between others in ranges that follow each other.
-- KEYS[1] gone
-- ARGV[1...] bounds: offsets, ascending; a range is from one to below the next
-- returns: one number a range
-- flags: no-writes
-- include: gone
local gone = KEYS[1]

local counts = {}
for n = 1, #ARGV - 1 do counts[n] = (gone_between(gone, tonumber(ARGV[n]), tonumber(ARGV[n + 1]) - 1)) end
return counts

-- Forgets the leases of what is gone for good, which were kept while it might have come back.
-- KEYS[1] log
-- KEYS[2] pending
-- KEYS[3] leases
-- returns: how many there were
-- flags: allow-oom
local log, pending, leases = KEYS[1], KEYS[2], KEYS[3]

local over = {}
for _, offset in ipairs(redis.call('HKEYS', leases)) do
  if not redis.call('ZSCORE', pending, offset) and #redis.call('XRANGE', log, offset, offset) == 0 then
    over[#over + 1] = offset
  end
end
for first = 1, #over, 1000 do redis.call('HDEL', leases, unpack(over, first, math.min(first + 999, #over))) end
return #over

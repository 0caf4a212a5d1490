-- Forgets the leases of what is gone for good, a slice of those that were kept while it might have come back.
-- KEYS[1] log
-- KEYS[2] leases
-- KEYS[3] shelved
-- ARGV[1] after: the offset that an earlier call ended with, or 0
-- ARGV[2] slice: most messages in one call
-- returns: the offset to go on after, or 0 when all was looked at
-- flags: allow-oom
local log, leases, shelved, after, slice = KEYS[1], KEYS[2], KEYS[3], ARGV[1], tonumber(ARGV[2])

local found, over = redis.call('ZRANGEBYSCORE', shelved, '(' .. after, '+inf', 'LIMIT', 0, slice), {}
for _, offset in ipairs(found) do
  if #redis.call('XRANGE', log, offset, offset) == 0 then over[#over + 1] = offset end
end
if #over > 0 then
  redis.call('HDEL', leases, unpack(over))
  redis.call('ZREM', shelved, unpack(over))
end
return #found == slice and tonumber(found[#found]) or 0

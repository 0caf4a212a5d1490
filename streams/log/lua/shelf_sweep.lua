-- Forgets what a group remembers of messages that are gone for good: leases that were kept while they might have come back,
-- and what waited for its key. A slice of each.
-- KEYS[1] log
-- KEYS[2] leases
-- KEYS[3] due
-- KEYS[4] shelved
-- KEYS[5] parked_aside
-- ARGV[1] after: the offset that an earlier call ended with, or 0
-- ARGV[2] slice: most messages of either in one call
-- returns: the offset to go on after, or 0 when all was looked at
-- flags: allow-oom
local log, leases, due, shelved, parked_aside = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local after, slice = ARGV[1], tonumber(ARGV[2])

-- Those that are gone, and where the slice ended before the last.
local function gone_of(key)
  local found, over = redis.call('ZRANGEBYSCORE', key, '(' .. after, '+inf', 'LIMIT', 0, slice), {}
  for _, offset in ipairs(found) do
    if #redis.call('XRANGE', log, offset, offset) == 0 then over[#over + 1] = offset end
  end
  if #over > 0 then redis.call('ZREM', key, unpack(over)) end
  return over, #found == slice and tonumber(found[#found]) or math.huge
end
local over, upto = gone_of(shelved)
if #over > 0 then
  redis.call('HDEL', leases, unpack(over))
  redis.call('ZREM', due, unpack(over))
end
upto = math.min(upto, select(2, gone_of(parked_aside)))
return upto < math.huge and upto or 0

-- Puts right what follows from the entries, if nothing has changed since they were looked at.
-- KEYS[1] meta
-- KEYS[2] ids: the bucket that takes new ones
-- KEYS[3] by_key
-- KEYS[4] expiry
-- ARGV[1] held: the packed counters that were looked at
-- ARGV[2] right: the packed counters that are right
-- ARGV[3...] index, member, value: what an index lacks; of ids and by_key a field and its offset, of expiry an offset and
--   its unix ms
-- returns: 1 when it is done, 0 when something has changed since
-- errors: OKMQ_NO_STREAM
local meta, ids, by_key, expiry = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local held, right = ARGV[1], ARGV[2]

if redis.call('HEXISTS', meta, 'settings') == 0 then return redis.error_reply('OKMQ_NO_STREAM') end
if (redis.call('HGET', meta, 'counters') or '') ~= held then return 0 end
for n = 3, #ARGV, 3 do
  local index, member, value = ARGV[n], ARGV[n + 1], ARGV[n + 2]
  if index == 'ids' then redis.call('HSET', ids, member, value)
  elseif index == 'by_key' then redis.call('HSET', by_key, member, value)
  else redis.call('ZADD', expiry, value, member) end
end
redis.call('HSET', meta, 'counters', right)
return 1

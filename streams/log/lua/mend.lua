-- Puts right what follows from the entries, if nothing has changed since they were looked at.
-- KEYS[1] meta
-- KEYS[2] ids: the bucket that takes new ones
-- KEYS[3] by_key
-- KEYS[4] expiry
-- KEYS[5] gone
-- ARGV[1] held: the packed counters that were looked at
-- ARGV[2] right: the packed counters that are right
-- ARGV[3...] index, member, value: what an index lacks; of ids and by_key a field and its offset, of expiry an offset and
--   its unix ms, of gone a run as <first>:<last> and its bytes
-- returns: 1 when it is done, 0 when something has changed since
-- errors: OKMQ_NO_STREAM
-- include: state, gone
local meta, ids, by_key, expiry, gone = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local held, right = ARGV[1], ARGV[2]

if redis.call('HEXISTS', meta, 'settings') == 0 then return redis.error_reply('OKMQ_NO_STREAM') end
if (redis.call('HGET', meta, 'counters') or '') ~= held then return 0 end
redis.call('HSET', meta, 'counters', right)
local floor, pending = state_load(meta).floor, {}
for n = 3, #ARGV, 3 do
  local index, member, value = ARGV[n], ARGV[n + 1], ARGV[n + 2]
  if index == 'ids' then redis.call('HSET', ids, member, value)
  elseif index == 'by_key' then redis.call('HSET', by_key, member, value)
  elseif index == 'expiry' then redis.call('ZADD', expiry, value, member)
  else
    local first, last = string.match(member, '^(%d+):(%d+)$')
    gone_add_run(gone, pending, floor, tonumber(first), tonumber(last), tonumber(value))
  end
end
gone_settle(gone, pending)
return 1

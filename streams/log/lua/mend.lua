-- Puts right what follows from the entries, if nothing has changed since they were looked at.
-- KEYS[1] meta
-- KEYS[2] ids_0
-- KEYS[3] ids_1
-- KEYS[4] by_key
-- KEYS[5] expiry
-- KEYS[6] gone
-- KEYS[7] hidden
-- ARGV[1] held: the packed counters that were looked at
-- ARGV[2] right: the packed counters that are right
-- ARGV[3...] index, member, value: what an index lacks; of ids:0, ids:1 and by_key a field and its offset, of expiry an
--   offset and its unix ms, of gone a run as <first>:<last> and its bytes, of hidden an offset twice; what has -1 goes
-- returns: 1 when it is done, 0 when something has changed since
-- errors: OKMQ_NO_STREAM
-- include: clock, state, gone
local meta, gone = KEYS[1], KEYS[6]
local hashes = {['ids:0'] = KEYS[2], ['ids:1'] = KEYS[3], by_key = KEYS[4]}
local sets = {expiry = KEYS[5], hidden = KEYS[7]}
local held, right = ARGV[1], ARGV[2]

if redis.call('HEXISTS', meta, 'settings') == 0 then return redis.error_reply('OKMQ_NO_STREAM') end
if (redis.call('HGET', meta, 'counters') or '') ~= held then return 0 end
redis.call('HSET', meta, 'counters', right)
local floor, pending = state_load(meta).floor, {}
for n = 3, #ARGV, 3 do
  local index, member, value = ARGV[n], ARGV[n + 1], ARGV[n + 2]
  if hashes[index] and value == '-1' then redis.call('HDEL', hashes[index], member)
  elseif hashes[index] then redis.call('HSET', hashes[index], member, value)
  elseif sets[index] and value == '-1' then redis.call('ZREM', sets[index], member)
  elseif sets[index] then redis.call('ZADD', sets[index], value, member)
  else
    local first, last = string.match(member, '^(%d+):(%d+)$')
    gone_add_run(gone, pending, floor, tonumber(first), tonumber(last), tonumber(value))
  end
end
gone_settle(gone, pending)
return 1

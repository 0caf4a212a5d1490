-- Delivers dead letters again, with a fresh count; their bodies are kept until they are acknowledged.
-- KEYS[1] group
-- KEYS[2] pending
-- KEYS[3] due
-- KEYS[4] leases
-- KEYS[5] dead
-- KEYS[6] replayed
-- ARGV[1] wake: channel
-- ARGV[2...] offsets: at most 1000
-- returns: how many there were
-- errors: OKMQ_NO_GROUP
-- include: state, floor, group
local group_key, pending, due, leases, dead, replayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local wake = ARGV[1]

if not group_load(group_key) then return redis.error_reply('OKMQ_NO_GROUP') end
local count = 0
for n = 2, #ARGV do
  local offset = ARGV[n]
  local letter = redis.call('ZRANGEBYSCORE', dead, offset, offset)[1]
  if letter then
    redis.call('HSET', replayed, offset, letter)
    redis.call('ZREM', dead, letter)
    redis.call('ZADD', pending, offset, offset)
    redis.call('ZADD', due, 0, offset)
    redis.call('HSET', leases, offset, '0:0:0:')
    count = count + 1
  end
end
if count > 0 then redis.call('PUBLISH', wake, 'due') end
return count

-- Delivers dead letters again, with a fresh count; their bodies are kept until they are acknowledged.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] group
-- KEYS[4] pending
-- KEYS[5] due
-- KEYS[6] leases
-- KEYS[7] dead
-- KEYS[8] replayed
-- KEYS[9] gone
-- KEYS[10] turns
-- KEYS[11] runs
-- ARGV[1] wake: channel
-- ARGV[2...] offsets: at most 1000
-- returns: how many there were
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP
-- include: clock, state, gone, floor, group, runs, order, again
local log, meta, group_key, dead, replayed, gone = KEYS[1], KEYS[2], KEYS[3], KEYS[7], KEYS[8], KEYS[9]
local keys, wake = {pending = KEYS[4], due = KEYS[5], leases = KEYS[6], turns = KEYS[10], runs = KEYS[11]}, ARGV[1]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
local count = 0
runs_open_named(keys, group, {unpack(ARGV, 2)})
group_save(group_key, group)
for n = 2, #ARGV do
  local offset = ARGV[n]
  local letter = redis.call('ZRANGEBYSCORE', dead, offset, offset)[1]
  if letter then
    redis.call('ZREM', dead, letter)
    -- After a seek the group may come to the message again by itself, or have it in flight: one lease is enough.
    local ahead = tonumber(offset) > group.delivered and group_entry(log, gone, replayed, state, offset)
    if not (ahead and group_wants(group, ahead)) then
      redis.call('HSET', replayed, offset, letter)
      again_join(keys, group, offset, cmsgpack.unpack(letter).key)
    end
    count = count + 1
  end
end
if count > 0 then redis.call('PUBLISH', wake, 'due') end
return count

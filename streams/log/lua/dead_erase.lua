-- Removes dead letters for good, also those that were replayed: what the stream does not hold itself comes no more.
-- KEYS[1] meta
-- KEYS[2] log
-- KEYS[3] gone
-- KEYS[4] group
-- KEYS[5] pending
-- KEYS[6] due
-- KEYS[7] leases
-- KEYS[8] replayed
-- KEYS[9] turns
-- KEYS[10] ready
-- KEYS[11] runs
-- KEYS[12] dead
-- KEYS[13] members
-- KEYS[14] shelved
-- ARGV[1] wake: channel, told when more may be taken again
-- ARGV[2...] offsets: at most 1000
-- returns: how many there were
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP
-- flags: allow-oom
-- include: clock, state, gone, floor, members, group, runs, order, out
local meta, log, gone, group_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local keys = {gone = gone, pending = KEYS[5], due = KEYS[6], leases = KEYS[7], replayed = KEYS[8], turns = KEYS[9],
  ready = KEYS[10], runs = KEYS[11], shelved = KEYS[14]}
local dead, members, wake = KEYS[12], KEYS[13], ARGV[1]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key, members)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
local count, out = 0, {}
for n = 2, #ARGV do
  local offset = ARGV[n]
  local was_dead = redis.call('ZREMRANGEBYSCORE', dead, offset, offset) > 0
  local was_replayed = redis.call('HDEL', keys.replayed, offset) > 0
  if was_dead or was_replayed then count = count + 1 end
  if was_replayed and redis.call('ZSCORE', keys.pending, offset)
      and not group_entry(log, gone, keys.replayed, state, offset) then
    out[#out + 1] = offset
  end
end
if #out > 0 then
  out_shelve(keys, state, group, out)
  group.unfinished = group.unfinished + #out
  group_save(group_key, group)
  redis.call('PUBLISH', wake, 'room')
end
return count

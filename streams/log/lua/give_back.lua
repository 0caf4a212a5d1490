-- Takes back deliveries that never reached anyone: they come again at once, and were no deliveries.
-- KEYS[1] group
-- KEYS[2] pending
-- KEYS[3] due
-- KEYS[4] leases
-- KEYS[5] runs
-- KEYS[6] members
-- ARGV[1] wake: channel
-- ARGV[2...] leases: those that have passed on or were voided by a seek are passed over
-- returns: how many there were
-- errors: OKMQ_NO_GROUP
-- flags: allow-oom
-- include: clock, state, gone, floor, members, group, runs
local group_key, pending, due, leases = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local keys = {runs = KEYS[5], pending = pending, due = due, leases = leases}
local members, wake = KEYS[6], ARGV[1]

local group = group_load(group_key, members)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
local count, named = 0, {}
for n = 2, #ARGV do named[n - 1] = string.match(ARGV[n], '^%d+%-(%d+)%-%d+$') end
runs_open_named(keys, group, named)
for n = 2, #ARGV do
  local generation, offset, sequence = string.match(ARGV[n], '^(%d+)%-(%d+)%-(%d+)$')
  local held = lease_read(leases, offset)
  local is_own = held and held.sequence == sequence
  -- A group that acknowledges nothing has no lease of it, and has passed it all the same.
  if tonumber(generation) == group.generation and (is_own or (not held and group.ack == 'none')) then
    local was_out = redis.call('ZADD', pending, offset, offset) == 0
    if is_own and was_out then members_tell(group, held.consumer, -1) end
    redis.call('ZADD', due, 0, offset)
    redis.call('HSET', leases, offset, string.format('%d:0:0:', is_own and held.deliveries - 1 or 0))
    count = count + 1
  end
end
group_save(group_key, group)
if count > 0 then redis.call('PUBLISH', wake, 'due') end
return count

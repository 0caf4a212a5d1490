-- Ends deliveries for good: they go to the dead letters with a reason.
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
-- KEYS[11] ready
-- ARGV[1] wake: channel, told when members may take more again
-- ARGV[2] reason: for the record
-- ARGV[3] mode: offsets or leases
-- ARGV[4...] values: offsets or leases
-- returns: how many it applied to
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP OKMQ_LEASE_LOST
-- include: state, gone, floor, group, order
local log, meta, group_key, pending = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local due, leases, dead, replayed, gone, turns, ready = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local wake, reason, mode = ARGV[1], ARGV[2], ARGV[3]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
group.ack = 'explicit'
local values = {}
for n = 4, #ARGV do values[n - 3] = ARGV[n] end
local offsets, lost = group_targets(group, pending, leases, mode, values)
if not offsets then return redis.error_reply('OKMQ_LEASE_LOST ' .. lost) end

local now, was_full = state_now(state), group_is_full(group, pending)
for _, offset in ipairs(offsets) do
  local entry = group_entry(log, gone, replayed, state, now, offset)
  if entry then group_bury(dead, entry, reason, lease_read(leases, offset).deliveries, now) end
  group_forget(pending, due, leases, offset)
  redis.call('HDEL', replayed, offset)
end
local came = group.ordered > 0 and order_pass(turns, ready, offsets) or 0
if came > 0 or was_full and #offsets > 0 then redis.call('PUBLISH', wake, 'room') end
return #offsets

-- Ends deliveries for good: they go to the dead letters with a reason.
-- KEYS[1] meta
-- KEYS[2] log
-- KEYS[3] gone
-- KEYS[4] expiry
-- KEYS[5] group
-- KEYS[6] pending
-- KEYS[7] due
-- KEYS[8] leases
-- KEYS[9] replayed
-- KEYS[10] turns
-- KEYS[11] ready
-- KEYS[12] runs
-- KEYS[13] dead
-- KEYS[14] members
-- ARGV[1] wake: channel, told when members may take more again
-- ARGV[2] reason: for the record
-- ARGV[3] mode: offsets or leases
-- ARGV[4...] values: offsets or leases
-- returns: how many it applied to
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP OKMQ_LEASE_LOST
-- include: state, gone, floor, members, group, runs, order, out
local meta, log, group_key, members = KEYS[1], KEYS[2], KEYS[5], KEYS[14]
local keys = {gone = KEYS[3], expiry = KEYS[4], pending = KEYS[6], due = KEYS[7], leases = KEYS[8], replayed = KEYS[9],
  turns = KEYS[10], ready = KEYS[11], runs = KEYS[12]}
local dead, wake, reason, mode = KEYS[13], ARGV[1], ARGV[2], ARGV[3]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key, members)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
floor_settle(log, keys.gone, meta, state)
local values = {}
for n = 4, #ARGV do values[n - 3] = ARGV[n] end
local was_full = group_is_full(group, keys.pending)
local offsets, lost, came = out_answered(keys, state, group, mode, values, false, true, mode == 'offsets')
if not offsets then
  group_save(group_key, group)
  return redis.error_reply('OKMQ_LEASE_LOST ' .. lost)
end

local now = state_now(state)
for _, offset in ipairs(offsets) do
  local entry = group_entry(log, keys.gone, keys.replayed, state, now, offset)
  if entry then group_bury(dead, entry, reason, lease_read(keys.leases, offset).deliveries, now) end
end
group.answered_ms = now
came = came + out_forget(keys, group, offsets)
group_save(group_key, group)
if came > 0 or (was_full and not group_is_full(group, keys.pending)) then redis.call('PUBLISH', wake, 'room') end
return #offsets

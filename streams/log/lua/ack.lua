-- Settles deliveries: they are done and never come again. What went from the stream meanwhile is passed over.
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
-- KEYS[13] members
-- ARGV[1] wake: channel, told when members may take more again
-- ARGV[2] steady: the store's steady clock in ms
-- ARGV[3] mode: offsets, neighbours, up_to or leases
-- ARGV[4...] values: offsets (of neighbours the first and the last) or leases
-- returns: how many were settled now; the offset up to which there are more to settle and where to go on, or nothing
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP OKMQ_LEASE_LOST
-- flags: allow-oom
-- include: state, gone, floor, members, group, runs, order, out
local meta, log, group_key, members = KEYS[1], KEYS[2], KEYS[5], KEYS[13]
local keys = {gone = KEYS[3], expiry = KEYS[4], pending = KEYS[6], due = KEYS[7], leases = KEYS[8], replayed = KEYS[9],
  turns = KEYS[10], ready = KEYS[11], runs = KEYS[12]}
local wake, steady, mode = ARGV[1], ARGV[2], ARGV[3]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key, members)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
floor_settle(log, keys.gone, meta, state)
local values = {}
for n = 4, #ARGV do values[n - 3] = ARGV[n] end
local was_full, covers = group_is_full(group, keys.pending), group.ack == 'all'
-- What was taken as a whole is mostly answered so, too.
local taken, is_all = 0, false
if mode == 'neighbours' then
  local first, last = tonumber(values[1]), tonumber(values[2])
  if not covers then taken = runs_settle(keys, state, group, first, last, last - first + 1) end
  mode, values, is_all = 'offsets', {}, taken == last - first + 1
  for offset = is_all and last + 1 or first, last do values[#values + 1] = string.format('%.0f', offset) end
elseif mode == 'leases' and not covers then
  local stretches = runs_leased(keys, state, group, values)
  for _, each in ipairs(stretches or {}) do taken = taken + runs_settle(keys, state, group, each[1], each[2], 1) end
  is_all = stretches ~= nil
end
local offsets, more, came, settled = {}, {}, 0, 0
if not is_all then offsets, more, came, settled = out_answered(keys, state, group, mode, values, covers, true) end
if not offsets then
  group_save(group_key, group)
  return redis.error_reply('OKMQ_LEASE_LOST ' .. more)
end

came = came + out_forget(keys, group, offsets)
settled = taken + settled + #offsets
if settled > 0 then
  group.answered_ms = state_now(state)
  group.acked, group.acked_ms = group.acked + settled, tonumber(steady)
end
group_save(group_key, group)
if came > 0 or (was_full and not group_is_full(group, keys.pending)) then redis.call('PUBLISH', wake, 'room') end
return {settled, more}

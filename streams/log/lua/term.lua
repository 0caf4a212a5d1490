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
-- KEYS[15] shelved
-- ARGV[1] wake: channel, told when members may take more again
-- ARGV[2] reason: for the record
-- ARGV[3] mode: offsets or leases
-- ARGV[4] holder: "=" and the consumer whose deliveries count; empty: whoever has them
-- ARGV[5...] values: offsets or leases
-- returns: the offsets of those that it ended; which of the values to go on with, or 0: bodies may be large
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP OKMQ_LEASE_LOST
-- include: clock, state, gone, floor, members, group, runs, order, out, answers
local meta, log, group_key, members = KEYS[1], KEYS[2], KEYS[5], KEYS[14]
local keys = {gone = KEYS[3], expiry = KEYS[4], pending = KEYS[6], due = KEYS[7], leases = KEYS[8], replayed = KEYS[9],
  turns = KEYS[10], ready = KEYS[11], runs = KEYS[12], shelved = KEYS[15]}
local dead, wake, reason = KEYS[13], ARGV[1], ARGV[2]
local most_bytes = 4194304

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key, members)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
floor_settle(log, keys.gone, meta, state)
local was_full, answer = group_is_full(group, keys), answer_read(ARGV[3], ARGV[4], {unpack(ARGV, 5)})
answer.also_undelivered, answer.is_final = answer.mode == 'offsets', true
local offsets, lost, came = answer_find(keys, state, group, answer)
if not offsets then
  group_save(group_key, group)
  return redis.error_reply('OKMQ_LEASE_LOST ' .. lost)
end

local now, size, ended, following = state_now(state), 0, {}, 0
for _, offset in ipairs(offsets) do
  if size >= most_bytes then
    for n, named in ipairs((answer_named(group, answer.mode, answer.values))) do
      if named == offset and following == 0 then following = n end
    end
    break
  end
  local entry = group_entry(log, keys.gone, keys.replayed, state, offset)
  if entry then
    group_bury(dead, entry, reason, lease_read(keys.leases, offset).deliveries, now)
    size = size + #entry[2][4]
  end
  ended[#ended + 1] = offset
end
group.answered_ms = now
came = came + out_forget(keys, group, ended)
group_save(group_key, group)
if came > 0 or (was_full and not group_is_full(group, keys)) then redis.call('PUBLISH', wake, 'room') end
return {ended, following}

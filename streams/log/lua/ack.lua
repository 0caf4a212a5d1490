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
-- KEYS[14] shelved
-- KEYS[15] acks
-- ARGV[1] wake: channel, told when members may take more again
-- ARGV[2] steady: the store's steady clock in ms
-- ARGV[3] mode: offsets, neighbours, up_to or leases
-- ARGV[4] holder: "=" and the consumer whose deliveries count; empty: whoever has them
-- ARGV[5...] values: offsets (of neighbours the first and the last) or leases
-- returns: how many were settled now; mode and values with which to go on, or nothing
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP OKMQ_LEASE_LOST
-- flags: allow-oom
-- include: clock, state, gone, floor, members, group, runs, order, out, answers, latency
local meta, log, group_key, members, acks = KEYS[1], KEYS[2], KEYS[5], KEYS[13], KEYS[15]
local keys = {gone = KEYS[3], expiry = KEYS[4], pending = KEYS[6], due = KEYS[7], leases = KEYS[8], replayed = KEYS[9],
  turns = KEYS[10], ready = KEYS[11], runs = KEYS[12], shelved = KEYS[14]}
local wake, steady = ARGV[1], ARGV[2]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key, members)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
floor_settle(log, keys.gone, meta, state)
local was_full, answer = group_is_full(group, keys), answer_read(ARGV[3], ARGV[4], {unpack(ARGV, 5)})
answer.covers, answer.is_final = group.ack == 'all', true
-- What was taken as a whole is mostly answered so, too.
local taken, rest, stretches = 0, {}, nil
if answer.mode == 'neighbours' then
  taken, rest = answer_neighbours(keys, state, group, answer)
elseif answer.mode == 'leases' and not answer.covers then
  stretches = runs_leased(keys, state, group, answer.values)
  for _, each in ipairs(stretches or {}) do taken = taken + runs_settle(keys, state, group, each[1], each[2], 1) end
end
local offsets, more, came, settled, highest = {}, {}, 0, 0, 0
if not stretches then offsets, more, came, settled, highest = answer_find(keys, state, group, answer) end
if not offsets then
  group_save(group_key, group)
  return redis.error_reply('OKMQ_LEASE_LOST ' .. more)
end
-- What was found covers the rest.
if highest == 0 or not answer.covers then more = rest end

came = came + out_forget(keys, group, offsets, true)
settled = taken + settled + #offsets
if settled > 0 then
  group.answered_ms, group.acks = state_now(state), acks
  group.acked, group.acked_ms = group.acked + settled, tonumber(steady)
  latency_count(log, group_key, state, group.settled or {}, offsets)
end
group_save(group_key, group)
if came > 0 or (was_full and not group_is_full(group, keys)) then redis.call('PUBLISH', wake, 'room') end
return {settled, more}

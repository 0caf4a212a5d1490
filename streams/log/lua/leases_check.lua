-- Refuses an answer by many leases, before a slice of it is done, where one of them has passed to another delivery.
-- KEYS[1] meta
-- KEYS[2] log
-- KEYS[3] gone
-- KEYS[4] expiry
-- KEYS[5] group
-- KEYS[6] leases
-- KEYS[7] replayed
-- KEYS[8] runs
-- ARGV[1...] leases: at most 1000
-- returns: 1
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP OKMQ_LEASE_LOST
-- flags: allow-oom
-- include: clock, state, gone, floor, members, group, runs, order, out, answers
local meta, log, group_key = KEYS[1], KEYS[2], KEYS[5]
local keys = {gone = KEYS[3], expiry = KEYS[4], leases = KEYS[6], replayed = KEYS[7],
  runs = KEYS[8]}

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
floor_settle(log, keys.gone, meta, state)
local answer = {mode = 'leases', values = {unpack(ARGV, 1)}}
local named, wanted = answer_named(group, answer.mode, answer.values)
local offsets, lost = answer_held(keys, state, answer, named, wanted)
-- What is in a run went out once since the last seek, so that only a lease of before can be of another delivery.
for n, offset in ipairs(offsets and group.runs > 0 and named or {}) do
  if wanted[n] == 'void' and runs_hold(keys, tonumber(offset)) then offsets, lost = nil, answer.values[n] break end
end
if not offsets then return redis.error_reply('OKMQ_LEASE_LOST ' .. lost) end
return 1

-- Makes dead letters of what was delivered as often as it may be and not answered in time, also where the stream has lost
-- it and its entry is not gone yet. Looks at a slice of what has come due since it looked last.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] group
-- KEYS[5] pending
-- KEYS[6] due
-- KEYS[7] leases
-- KEYS[8] dead
-- KEYS[9] replayed
-- KEYS[10] turns
-- KEYS[11] ready
-- KEYS[12] runs
-- KEYS[13] members
-- KEYS[14] shelved
-- ARGV[1] wake: channel, told when members may take more again
-- ARGV[2] steady: the store's steady clock in ms
-- ARGV[3] after: the member of due that an earlier call ended with, or 0
-- returns: how many there were, the member of due to go on after, -1 to begin again, or 0 when all was looked at
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP
-- flags: allow-oom
-- include: clock, state, gone, floor, members, group, runs, order, out, spent
local log, meta, gone, group_key, pending, due = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local keys = {log = log, gone = gone, pending = pending, due = due, leases = KEYS[7], dead = KEYS[8], replayed = KEYS[9],
  turns = KEYS[10], ready = KEYS[11], runs = KEYS[12], shelved = KEYS[14]}
local members, wake, steady, after = KEYS[13], ARGV[1], tonumber(ARGV[2]), ARGV[3]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key, members)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
if group.max_deliver <= 0 then return {0, 0} end
local was_full = group_is_full(group, keys)
local retired, following = spent_bury(keys, state, group, steady, after)
local came = out_forget(keys, group, retired)
group_save(group_key, group)
if came > 0 or (was_full and not group_is_full(group, keys)) then redis.call('PUBLISH', wake, 'room') end
return {#retired, tonumber(following) or following}

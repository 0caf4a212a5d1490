-- Moves a group: what is in flight is void, delivery counts start anew, dead letters stay.
-- KEYS[1] meta
-- KEYS[2] group
-- KEYS[3] pending
-- KEYS[4] due
-- KEYS[5] leases
-- KEYS[6] replayed
-- KEYS[7] turns
-- KEYS[8] parked
-- KEYS[9] ready
-- ARGV[1] wake: channel
-- ARGV[2] next: the offset that is delivered next; beyond the end is the end
-- returns: the next offset of before and after
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP
-- flags: allow-oom
-- include: state, gone, floor, group
local meta, group_key, pending, due, leases, replayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local turns, parked, ready = KEYS[7], KEYS[8], KEYS[9]
local wake, wanted = ARGV[1], tonumber(ARGV[2])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end

-- A new generation makes the leases of before unknown, also to members that still hold them.
local before = math.max(group.delivered + 1, state.floor)
group.lost = group.lost + before - 1 - group.delivered + redis.call('ZCOUNT', parked, '-inf', state.floor - 1)
local after = math.max(state.floor, math.min(wanted, state.last + 1))
redis.call('UNLINK', pending, due, leases, replayed, turns, parked, ready)
redis.call('HINCRBY', group_key, 'generation', 1)
group.delivered = after - 1
group_save(group_key, group)
redis.call('PUBLISH', wake, 'seek')
return {before, after}

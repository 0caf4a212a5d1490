-- Counts the visible messages that a group's filter lets through and that it has not delivered. What was counted is
-- kept by blocks of offsets, each with the deletions in it at the time, so that only what has changed is counted anew.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] group
-- KEYS[5] counted
-- ARGV[1] from: offset where an earlier call stopped, or 0
-- returns: how many in this part, where to go on or 0, time of the first of them or 0
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP
-- include: clock, state, gone, floor, group, budget, matching
local log, meta, gone, group_key, counted = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local from = tonumber(ARGV[1])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
from = math.max(from, group.delivered + 1, state.floor)
local count = matching_open(log, gone, counted, state, group)
local head = math.min(matching_end(from), state.last)
-- The block that the group is in is counted from the group on, and not kept.
if from ~= matching_start(from) then
  matching_scan(count, from, head)
  from = head + 1
end
matching_blocks(count, from)
matching_forget(count)
return {count.total, count.stopped or 0, count.first_ms}

-- Brings a group up to date with what went before it was given it, a slice in one call.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] went
-- KEYS[5] group
-- returns: 1 when done, up to which offset and which removal it has counted, 1 when it has a filter
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP
-- flags: allow-oom
-- include: clock, state, gone, floor, group, losses
local meta, group_key, keys = KEYS[2], KEYS[5], {log = KEYS[1], gone = KEYS[3], went = KEYS[4]}

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
local is_done = losses_settle(keys, state, group)
group_save(group_key, group)
return {is_done and 1 or 0, group.delivered, group.seen, #group.filter > 0 and 1 or 0}

-- The lowest offset above what the history has that was set aside: the history waits there, as it may come back.
-- KEYS[1] meta
-- KEYS[2] aside
-- KEYS[3] removals
-- returns: the offset, 0 where there is none
-- errors: OKMQ_NO_STREAM
-- flags: no-writes
-- include: clock, state, gone, floor, taken, group, removal, aside
local meta, aside, removals = KEYS[1], KEYS[2], KEYS[3]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
return aside_above(aside, removals, state.archived) or 0

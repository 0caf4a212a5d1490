-- Lets a memory stream hand out offsets up to one that is reserved; never less than before.
-- KEYS[1] meta
-- ARGV[1] ceiling: the last offset reserved
-- returns: 1 when it was raised
-- errors: OKMQ_NO_STREAM
-- include: clock, state
local meta = KEYS[1]
local ceiling = tonumber(ARGV[1])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
if state.ceiling >= ceiling then return 0 end
state.ceiling = ceiling
state_save(meta, state)
return 1

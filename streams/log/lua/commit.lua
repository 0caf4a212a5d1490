-- Moves the committed offset, forwards or back.
-- KEYS[1] meta
-- ARGV[1] offset: the last one processed; 0 is the start
-- returns: the committed offset of before
-- errors: OKMQ_NO_STREAM OKMQ_RANGE
-- flags: allow-oom
-- include: state
local meta = KEYS[1]
local offset = tonumber(ARGV[1])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
if offset > state.last then return redis.error_reply(string.format('OKMQ_RANGE %.0f', state.last)) end
local previous = state.committed
state.committed = offset
state_save(meta, state)
return previous

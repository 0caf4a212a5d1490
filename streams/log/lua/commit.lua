-- Moves the committed offset, forwards or back; back wakes those who read from it.
-- KEYS[1] meta
-- ARGV[1] offset: the last one processed; 0 is the start
-- ARGV[2] wake: channel
-- returns: the committed offset of before
-- errors: OKMQ_NO_STREAM OKMQ_RANGE
-- flags: allow-oom
-- include: clock, state
local meta = KEYS[1]
local offset, wake = tonumber(ARGV[1]), ARGV[2]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
if offset > state.last then return redis.error_reply(string.format('OKMQ_RANGE %.0f', state.last)) end
local previous = state.committed
state.committed = offset
state_save(meta, state)
if offset < previous then redis.call('PUBLISH', wake, string.format('%d', state.last)) end
return previous

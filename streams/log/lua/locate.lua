-- Finds the first visible offset whose time is at or after a given time.
-- KEYS[1] log
-- KEYS[2] meta
-- ARGV[1] at_ms: unix ms
-- returns: the offset; last + 1 where nothing is that new
-- errors: OKMQ_NO_STREAM
-- flags: no-writes
-- include: clock, state, gone, floor
local log, meta = KEYS[1], KEYS[2]
local at_ms = tonumber(ARGV[1])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
return offset_at(log, state, at_ms)

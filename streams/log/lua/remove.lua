-- Deletes a stream with everything in it and tells those who wait on it.
-- KEYS[1] meta
-- KEYS[2...] others: every other key of the stream
-- ARGV[1] wake: channel
-- returns: the last offset that it gave, -1 where there was no such stream
-- flags: allow-oom
-- include: clock, state
local meta, wake = KEYS[1], ARGV[1]

local state = state_load(meta)
for _, key in ipairs(KEYS) do redis.call('UNLINK', key) end
redis.call('PUBLISH', wake, 'gone')
return state and state.last or -1

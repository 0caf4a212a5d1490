-- Deletes a stream with everything in it and tells those who wait on it.
-- KEYS[1...] keys: every key of the stream
-- ARGV[1] wake: channel
-- returns: number of keys that were there
-- flags: allow-oom
local wake = ARGV[1]

local removed = 0
for _, key in ipairs(KEYS) do removed = removed + redis.call('UNLINK', key) end
redis.call('PUBLISH', wake, 'gone')
return removed

-- Deletes a group and tells those who wait on it.
-- KEYS[1...] keys: every key of the group
-- ARGV[1] wake: channel
-- returns: number of keys that were there
-- flags: allow-oom
local wake = ARGV[1]

local removed = 0
for _, key in ipairs(KEYS) do removed = removed + redis.call('UNLINK', key) end
redis.call('PUBLISH', wake, 'group')
return removed

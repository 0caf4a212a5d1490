-- Stops a group from delivering, until a time or until it is resumed; or lets it deliver again.
-- KEYS[1] group
-- ARGV[1] wake: channel, so that a poll that waits learns when it is served
-- ARGV[2] until: unix ms, -1 without an end, empty to deliver again
-- errors: OKMQ_NO_GROUP
-- flags: allow-oom
local group, wake, until_ms = KEYS[1], ARGV[1], ARGV[2]

if redis.call('HEXISTS', group, 'name') == 0 then return redis.error_reply('OKMQ_NO_GROUP') end
if until_ms == '' then redis.call('HDEL', group, 'paused_until') else redis.call('HSET', group, 'paused_until', until_ms) end
redis.call('PUBLISH', wake, 'due')
return 1

-- Stops a group from delivering, until a time or until it is resumed; or lets it deliver again.
-- KEYS[1] group
-- ARGV[1] wake: channel, so that a poll that waits learns when it is served
-- ARGV[2] until: unix ms, -1 without an end, empty to deliver again
-- errors: OKMQ_NO_GROUP
-- flags: allow-oom
-- include: clock, state, floor, group
local group_key, wake, until_ms = KEYS[1], ARGV[1], ARGV[2]

local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
group.paused_until = tonumber(until_ms) or 0
group_save(group_key, group)
redis.call('PUBLISH', wake, 'due')
return 1

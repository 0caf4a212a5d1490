-- Makes a group, or changes the settings of one.
-- KEYS[1] meta
-- KEYS[2] group
-- KEYS[3] groups
-- ARGV[1] wake: channel
-- ARGV[2] name: of the group
-- ARGV[3] delivered: where a new group starts: everything up to this offset counts as delivered
-- ARGV[4...] pairs: setting, value; an empty value takes the setting away
-- returns: 1 when the group is new, else 0
-- errors: OKMQ_NO_STREAM
local meta, group, groups = KEYS[1], KEYS[2], KEYS[3]
local wake, name, delivered = ARGV[1], ARGV[2], ARGV[3]

if redis.call('HEXISTS', meta, 'name') == 0 then return redis.error_reply('OKMQ_NO_STREAM') end
local new = redis.call('HEXISTS', group, 'name') == 0
for n = 4, #ARGV, 2 do
  if ARGV[n + 1] == '' then redis.call('HDEL', group, ARGV[n]) else redis.call('HSET', group, ARGV[n], ARGV[n + 1]) end
end
if new then
  redis.call('SADD', groups, name)
  -- It begins with the time, so that leases of a group that had this name before are unknown to this one.
  local time = redis.call('TIME')
  redis.call('HSET', group, 'name', name, 'delivered', delivered, 'generation',
    string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
else
  redis.call('PUBLISH', wake, 'group')
end
return new and 1 or 0

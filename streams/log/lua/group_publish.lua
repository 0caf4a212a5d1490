-- Makes a group, or changes the settings of one.
-- KEYS[1] meta
-- KEYS[2] group
-- KEYS[3] groups
-- KEYS[4] counted
-- ARGV[1] wake: channel
-- ARGV[2] name: of the group
-- ARGV[3] delivered: where a new group starts: everything up to this offset counts as delivered
-- ARGV[4] steady: the store's steady clock in ms
-- ARGV[5...] pairs: setting, value; an empty value takes the setting away
-- returns: 1 when the group is new, 2 when what is in flight must be put in order (order_adopt), else 0
-- errors: OKMQ_NO_STREAM
-- flags: allow-oom
local meta, group, groups, counted = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local wake, name, delivered, steady = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

if redis.call('HEXISTS', meta, 'name') == 0 then return redis.error_reply('OKMQ_NO_STREAM') end
local new, ordered = redis.call('HEXISTS', group, 'name') == 0, '0'
for n = 5, #ARGV, 2 do
  local field, value = ARGV[n], ARGV[n + 1]
  -- What was counted for another filter is worth nothing.
  if field == 'filter' and (redis.call('HGET', group, field) or '') ~= value then redis.call('UNLINK', counted) end
  if field == 'ordered' then ordered = value
  elseif value == '' then redis.call('HDEL', group, field)
  else redis.call('HSET', group, field, value) end
end
if new then
  redis.call('SADD', groups, name)
  -- It begins with the time, so that leases of a group that had this name before are unknown to this one.
  local time = redis.call('TIME')
  redis.call('HSET', group, 'name', name, 'delivered', delivered, 'ordered', ordered, 'made_ms', steady, 'generation',
    string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
  return 1
end
-- 2 lets what waits for its key go out in order, and lines up nothing new.
local held = redis.call('HGET', group, 'ordered') or '0'
if held ~= ordered and (held ~= '2' or ordered == '1') then redis.call('HSET', group, 'ordered', '2') end
redis.call('PUBLISH', wake, 'group')
return held ~= '1' and ordered == '1' and 2 or 0

-- Makes a group, or changes the settings of one.
-- KEYS[1] meta
-- KEYS[2] group
-- KEYS[3] groups
-- KEYS[4] counted
-- KEYS[5] log
-- KEYS[6] gone
-- KEYS[7] went
-- KEYS[8] expiry
-- ARGV[1] wake: channel
-- ARGV[2] name: of the group
-- ARGV[3] delivered: where a new group starts: everything up to this offset counts as delivered
-- ARGV[4] steady: the store's steady clock in ms
-- ARGV[5...] pairs: setting, value; an empty value takes the setting away
-- returns: 1 when the group is new, 2 when what is in flight must be put in order (order_adopt), 3 to call again once
--   what is over has expired, else 0
-- errors: OKMQ_NO_STREAM
-- flags: allow-oom
-- include: state, gone, floor, group, losses
local meta, group, groups, counted = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local keys, expiry = {log = KEYS[5], gone = KEYS[6], went = KEYS[7]}, KEYS[8]
local wake, name, delivered, steady = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local now = state_now(state)
raise_floor(keys.log, keys.gone, state, floor_by_limits(keys.log, keys.gone, state, now))
state_save(meta, state)
local held, ordered = group_load(group), '0'
local new = not held
-- What has gone before a group begins is nothing that it lost.
if new and redis.call('ZCOUNT', expiry, '-inf', now) > 0 then return 3 end
if not new and not losses_settle(keys, state, held) then
  group_save(group, held)
  return 3
end
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
  redis.call('HSET', group, 'name', name, 'delivered', string.format('%.0f', math.max(tonumber(delivered), state.floor - 1)),
    'ordered', ordered, 'made_ms', steady, 'generation', string.format('%.0f', now))
end
losses_begin(keys, state, group, held)
-- With another limit others of those in flight may have been delivered too often.
redis.call('HDEL', group, 'retired_ms')
if new then return 1 end
-- 2 lets what waits for its key go out in order, and lines up nothing new.
local before = redis.call('HGET', group, 'ordered') or '0'
if before ~= ordered and (before ~= '2' or ordered == '1') then redis.call('HSET', group, 'ordered', '2') end
redis.call('PUBLISH', wake, 'group')
return before ~= '1' and ordered == '1' and 2 or 0

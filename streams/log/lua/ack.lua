-- Settles deliveries: they are done and never come again.
-- KEYS[1] group
-- KEYS[2] pending
-- KEYS[3] due
-- KEYS[4] leases
-- KEYS[5] replayed
-- KEYS[6] turns
-- KEYS[7] ready
-- ARGV[1] wake: channel, told when members may take more again
-- ARGV[2] steady: the store's steady clock in ms
-- ARGV[3] mode: offsets, up_to or leases
-- ARGV[4...] values: offsets or leases
-- returns: how many were settled now
-- errors: OKMQ_NO_GROUP OKMQ_LEASE_LOST
-- flags: allow-oom
-- include: state, gone, floor, group, order
local group_key, pending, due, leases, replayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local turns, ready = KEYS[6], KEYS[7]
local wake, steady, mode = ARGV[1], ARGV[2], ARGV[3]

local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
local values = {}
for n = 4, #ARGV do values[n - 3] = ARGV[n] end
local offsets, lost = group_targets(group, pending, leases, mode, values)
if not offsets then return redis.error_reply('OKMQ_LEASE_LOST ' .. lost) end

local was_full, came = group_is_full(group, pending), 0
for first = 1, #offsets, 1000 do
  local slice = {}
  for n = first, math.min(first + 999, #offsets) do slice[#slice + 1] = offsets[n] end
  redis.call('ZREM', pending, unpack(slice))
  redis.call('ZREM', due, unpack(slice))
  redis.call('HDEL', leases, unpack(slice))
  redis.call('HDEL', replayed, unpack(slice))
  if group.ordered > 0 then came = came + order_pass(turns, ready, slice) end
end
if #offsets > 0 then
  group.acked = group.acked + #offsets
  group.acked_ms = tonumber(steady)
  group_save(group_key, group)
  if was_full or came > 0 then redis.call('PUBLISH', wake, 'room') end
end
return #offsets

-- Messages that come to a group with a body of their own: dead letters that are delivered again, and what the history brings.
-- Needs the includes group and order. replayed holds them, until they are answered, as dead letters; what the history
-- brought never died: its died_ms is 0.

-- Puts one in flight, due at once; false where it is out already. Ordered by key, it waits behind what its key has out and what
-- waits already.
local function again_join(keys, group, offset, key)
  if redis.call('ZADD', keys.pending, 'NX', offset, offset) == 0 then return false end
  local first = true
  if key and group.ordered == TURNS.on and group.ack ~= 'none' then first = order_rejoin(keys.turns, offset, key) end
  if first then redis.call('ZADD', keys.due, 0, offset) end
  redis.call('HSET', keys.leases, offset, '0:0:0:')
  return true
end

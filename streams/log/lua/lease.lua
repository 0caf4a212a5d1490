-- Takes, keeps or gives back a lease.
-- KEYS[1] lease
-- ARGV[1] owner: who asks
-- ARGV[2] for_ms: how long; 0 gives it back
-- returns: 1 when the owner holds it now, else 0
-- flags: allow-oom
local lease = KEYS[1]
local owner, for_ms = ARGV[1], tonumber(ARGV[2])

local holder = redis.call('GET', lease)
if holder and holder ~= owner then return 0 end
if for_ms == 0 then
  redis.call('DEL', lease)
  return 0
end
redis.call('SET', lease, owner, 'PX', for_ms)
return 1

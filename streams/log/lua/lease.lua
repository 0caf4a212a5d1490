-- Takes, keeps or gives back a lease, and notes what its holder has done last.
-- KEYS[1] lease
-- KEYS[2] done
-- ARGV[1] owner: who asks
-- ARGV[2] for_ms: how long; 0 gives it back
-- ARGV[3] done_ms: when the owner was done last, unix ms; 0 where it was not yet
-- returns: 1 when the owner holds it now, else 0
-- flags: allow-oom
local lease, done = KEYS[1], KEYS[2]
local owner, for_ms, done_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local holder = redis.call('GET', lease)
if holder and holder ~= owner then return 0 end
if done_ms > 0 then redis.call('SET', done, done_ms) end
if for_ms == 0 then
  redis.call('DEL', lease)
  return 0
end
redis.call('SET', lease, owner, 'PX', for_ms)
return 1

-- Takes, keeps or gives back a lease, notes what its holder has done last, and where too long passed before it.
-- KEYS[1] lease
-- KEYS[2] done
-- KEYS[3] silences
-- ARGV[1] owner: who asks
-- ARGV[2] for_ms: how long; 0 gives it back
-- ARGV[3] done_ms: when the owner was done last, unix ms; 0 where it was not yet
-- ARGV[4] most_ms: after more than so long between two times of being done there was a silence
-- ARGV[5] kept_ms: silences that ended so long before the newest time are forgotten
-- returns: 1 when the owner holds it now, else 0
-- flags: allow-oom
local lease, done, silences = KEYS[1], KEYS[2], KEYS[3]
local owner, for_ms, done_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local most_ms, kept_ms = tonumber(ARGV[4]), tonumber(ARGV[5])

local holder = redis.call('GET', lease)
-- One that would hold it for ever is none of ours.
if holder and holder ~= owner and redis.call('PTTL', lease) ~= -1 then return 0 end
local before_ms = tonumber(redis.call('GET', done) or 0)
-- One that hung meanwhile says nothing new. A clock that was set back is believed by who kept the lease.
if done_ms > before_ms or (done_ms > 0 and holder) then
  redis.call('SET', done, done_ms)
  if before_ms > 0 and done_ms - before_ms > most_ms then
    redis.call('ZADD', silences, done_ms, before_ms .. ' ' .. done_ms)
    redis.call('ZREMRANGEBYSCORE', silences, '-inf', done_ms - kept_ms)
  end
end
if for_ms == 0 then
  redis.call('DEL', lease)
  return 0
end
redis.call('SET', lease, owner, 'PX', for_ms)
return 1

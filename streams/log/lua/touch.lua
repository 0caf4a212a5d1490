-- Tells the worker which streams have changed.
-- KEYS[1] touched
-- ARGV[1...] internal ids
-- returns: how many it had not been told of
-- flags: allow-oom
local AT_ONCE, fresh = 1000, 0
for first = 1, #ARGV, AT_ONCE do
  fresh = fresh + redis.call('SADD', KEYS[1], unpack(ARGV, first, math.min(first + AT_ONCE - 1, #ARGV)))
end
return fresh

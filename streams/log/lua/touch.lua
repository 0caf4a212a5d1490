-- Tells the worker which streams have changed.
-- KEYS[1] touched
-- ARGV[1...] internal ids
-- returns: how many it had not been told of
-- flags: allow-oom
local fresh = 0
for n = 1, #ARGV do fresh = fresh + redis.call('SADD', KEYS[1], ARGV[n]) end
return fresh

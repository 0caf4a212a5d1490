-- Writes one small value of which the number is bounded, also on a full server: a token, what the worker keeps.
-- KEYS[1] key
-- ARGV[1] verb: SET, HSET, HSETNX, HINCRBY or ZADD
-- ARGV[2...] arguments: of the verb, after the key
-- returns: the verb's reply
-- flags: allow-oom
local key, verb = KEYS[1], ARGV[1]

local arguments = {unpack(ARGV, 2)}
if verb == 'SET' then return redis.call('SET', key, unpack(arguments)) end
if verb == 'ZADD' then return redis.call('ZADD', key, unpack(arguments)) end
if verb == 'HSETNX' then return redis.call('HSETNX', key, unpack(arguments)) end
if verb == 'HINCRBY' then return redis.call('HINCRBY', key, unpack(arguments)) end
return redis.call('HSET', key, unpack(arguments))

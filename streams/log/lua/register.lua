-- Lists a stream in the registry and under its name, with the key patterns that it accepts.
-- KEYS[1] registry
-- KEYS[2] names
-- KEYS[3] patterns
-- ARGV[1] internal id
-- ARGV[2] entry: JSON
-- ARGV[3] name
-- ARGV[4] accepted: JSON, empty where it accepts any key
-- returns: 1
-- flags: allow-oom
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[2], ARGV[3], ARGV[1])
if ARGV[4] == '' then redis.call('HDEL', KEYS[3], ARGV[3]) else redis.call('HSET', KEYS[3], ARGV[3], ARGV[4]) end
return 1

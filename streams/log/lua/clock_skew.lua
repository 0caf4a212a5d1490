-- Notes that the server's wall clock was set, where nobody has noted it meanwhile.
-- KEYS[1] skew
-- ARGV[1] held: by how much the wall clock was known to be ahead of the steady one, ms
-- ARGV[2] fresh: by how much it is now
-- returns: 1 when noted
-- flags: allow-oom
local skew = KEYS[1]
local held, fresh = ARGV[1], ARGV[2]

if (redis.call('GET', skew) or '0') ~= held then return 0 end
redis.call('SET', skew, fresh)
return 1

-- Publishes a stream's settings; counters are left as they are, and start at nothing for a new stream.
-- KEYS[1] meta
-- ARGV[1...] pairs: field, value; an empty value takes the field away
-- returns: 1 when the stream is new here, else 0
local meta = KEYS[1]

local new = redis.call('EXISTS', meta) == 0
for n = 1, #ARGV, 2 do
  if ARGV[n + 1] == '' then redis.call('HDEL', meta, ARGV[n]) else redis.call('HSET', meta, ARGV[n], ARGV[n + 1]) end
end
return new and 1 or 0

-- Notes how far the history has come; never backwards, and never for a stream that is gone.
-- KEYS[1] meta
-- ARGV[1] offset: the last one archived
-- returns: 1 when noted
local meta = KEYS[1]
local offset = ARGV[1]

local held = redis.call('HMGET', meta, 'name', 'archived')
if not held[1] or tonumber(held[2] or 0) >= tonumber(offset) then return 0 end
redis.call('HSET', meta, 'archived', offset)
return 1

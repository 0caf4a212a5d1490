-- Moves the committed offset, forwards or back.
-- KEYS[1] meta
-- ARGV[1] offset: the last one processed; 0 is the start
-- returns: the committed offset of before
-- errors: OKMQ_NO_STREAM OKMQ_RANGE
local meta = KEYS[1]
local offset = ARGV[1]

local held = redis.call('HMGET', meta, 'name', 'last', 'committed')
if not held[1] then return redis.error_reply('OKMQ_NO_STREAM') end
if tonumber(offset) > tonumber(held[2] or 0) then return redis.error_reply('OKMQ_RANGE ' .. (held[2] or 0)) end
redis.call('HSET', meta, 'committed', offset)
return tonumber(held[3] or 0)

-- Says which life of this server a memory stream lives in, if it has to be begun (anew).
-- KEYS[1] meta
-- ARGV[1] fresh: a random word, kept where there is none
-- returns: empty where the stream is there, else the word that `begin` must name
-- flags: allow-oom
local meta = KEYS[1]
local fresh = ARGV[1]

if redis.call('HEXISTS', meta, 'name') == 1 then return '' end
redis.call('HSETNX', meta, 'life', fresh)
return redis.call('HGET', meta, 'life')

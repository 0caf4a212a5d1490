-- Says which offsets hold dead letters, from one on, without their bodies.
-- KEYS[1] meta
-- KEYS[2] dead
-- ARGV[1] from: offset
-- ARGV[2] page: most of them
-- returns: the offsets
-- errors: OKMQ_NO_STREAM
-- flags: no-writes
-- include: clock, state
local meta, dead, from, page = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
-- Their bodies are read here, so there are few of them where they may be large.
page = math.max(1, math.min(page, math.floor(4194304 / math.max(1, state.widest))))
local found, offsets = redis.call('ZRANGEBYSCORE', dead, from, '+inf', 'WITHSCORES', 'LIMIT', 0, page), {}
for n = 2, #found, 2 do offsets[#offsets + 1] = tonumber(found[n]) end
return offsets

-- Takes away messages whose own time to live is over: invisible and uncounted at once, removed when the history has them.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] hidden
-- KEYS[5] by_key
-- KEYS[6] latest
-- KEYS[7] went
-- KEYS[8] expiry
-- returns: messages that expired now, 1 when none is left to look at, ms since the first of those that are left was over
-- errors: OKMQ_NO_STREAM
-- flags: allow-oom
-- include: clock, state, gone, floor, removal, budget, expired
local meta = KEYS[2]
local stream = {log = KEYS[1], gone = KEYS[3], hidden = KEYS[4], by_key = KEYS[5], latest = KEYS[6], went = KEYS[7], expiry = KEYS[8]}

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local expired, done = expired_take(stream, state, budget_begin())
if done then state.crowded = 0 end
state_save(meta, state)
local ends = redis.call('ZRANGE', stream.expiry, 0, 0, 'WITHSCORES')[2]
return {expired, done and 1 or 0, ends and math.max(0, steady_ms() - tonumber(ends)) or 0}

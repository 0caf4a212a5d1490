-- Says whether the worker has anything to do for a stream; most have nothing, and to look is one call instead of seven.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] latest
-- KEYS[5] went
-- KEYS[6] expiry
-- KEYS[7] kept
-- KEYS[8] removals
-- returns: 1 where something is over, waits to go physically, or has to be counted; else 0
-- errors: OKMQ_NO_STREAM
-- flags: no-writes
-- include: clock, state, gone, floor
local log, meta, gone, latest = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local went, expiry, kept, removals = KEYS[5], KEYS[6], KEYS[7], KEYS[8]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
-- What is being looked through, can be undone, waits for the history or is counted by filters has to be asked each time.
if state.retention == 'interest' or state.hidden == 1 or state.held_since > 0 then return 1 end
-- What was set aside has fields beside the newest number, which stays.
if redis.call('EXISTS', went, kept) > 0 or redis.call('HLEN', removals) > 1 then return 1 end
local per_key = state.max_messages_per_key
if per_key and (state.indexed ~= 1 or per_key < state.indexed_for) then return 1 end
if not per_key and redis.call('EXISTS', latest) == 1 then return 1 end
if redis.call('ZCOUNT', expiry, '-inf', steady_ms()) > 0 then return 1 end
if floor_by_limits(log, gone, state) > state.floor then return 1 end
local edge = floor_or_kept(state)
local first = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
if first and entry_offset(first) < edge then return 1 end
return redis.call('ZCOUNT', gone, 0, string.format('(%.0f', edge)) > 0 and 1 or 0

-- Says how a stream stands, with what has just expired already gone.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] by_key
-- returns: last, last_ms, first, first_ms, messages, bytes, committed, lag, keys, duplicates, archived, cum, floor,
--   widest, now
-- errors: OKMQ_NO_STREAM
-- include: state, floor
local log, meta, gone, by_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local now = state_now(state)
raise_floor(log, gone, state, floor_by_limits(log, gone, state, now))
state_save(meta, state)
local entry = redis.call('XRANGE', log, state.floor, '+', 'COUNT', 1)[1]
local first, first_ms = state.last + 1, 0
if entry and state.messages > 0 then first, first_ms = entry_offset(entry), entry_ms(entry) end
local after = math.max(state.committed, state.floor - 1)
local lag = state.last - after - redis.call('ZCOUNT', gone, after + 1, '+inf')
return {state.last, state.last_ms, first, first_ms, state.messages, state.bytes, state.committed, lag,
  redis.call('HLEN', by_key), state.duplicates, state.archived, state.cum, state.floor, state.widest, now}

-- Says what a purge would take away below the floor; changes nothing.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- ARGV[1] mode: below (everything below an offset), keep (all but the newest)
-- ARGV[2] value: the offset, or how many to keep
-- returns: messages and bytes that would go, the floor of now, the floor then, time of the message there or 0, last,
--   how many ever went from between others and came back there, 0 where no message ever had a key, the last offset that
--   would go, below the floor of now where none would, from which offset on something set aside could then come back,
--   were it for good, or 0 where nothing is set aside
-- errors: OKMQ_NO_STREAM
-- flags: no-writes
-- include: clock, state, gone, floor
local log, meta, gone = KEYS[1], KEYS[2], KEYS[3]
local mode, value = ARGV[1], tonumber(ARGV[2])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
raise_floor(log, gone, state, floor_by_limits(log, gone, state))
local floor, held = state.floor, state.messages
local target = mode == 'below' and value or floor_keeping(gone, state, value)
local messages, bytes = raise_floor(log, gone, state, target)
floor_end_aside(state, mode, value, held, target)
local entry = redis.call('XRANGE', log, state.floor, state.floor)[1]
return {messages, bytes, floor, state.floor, entry and entry_ms(entry) or 0, state.last,
  state.removals, state.returns, state.keyed, gone_trim(gone, floor, state.floor) - 1, state.kept}

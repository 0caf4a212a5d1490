-- Says what other limits would take away below the floor; changes nothing.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- ARGV[1] limits: MessagePack map of the limits that would hold
-- returns: messages and bytes that would go, the floor of now, the floor then, time of the message there or 0, last,
--   how many ever went from between others and came back there, 0 where no message ever had a key
-- errors: OKMQ_NO_STREAM
-- flags: no-writes
-- include: clock, state, gone, floor
local log, meta, gone = KEYS[1], KEYS[2], KEYS[3]
local limits = cmsgpack.unpack(ARGV[1])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
raise_floor(log, gone, state, floor_by_limits(log, gone, state))
local floor = state.floor
-- The stream's own settings are kept for other calls: nothing is written into them.
setmetatable(state, {__index = limits})
local messages, bytes = raise_floor(log, gone, state, floor_by_limits(log, gone, state))
local entry = redis.call('XRANGE', log, state.floor, state.floor)[1]
return {messages, bytes, floor, state.floor, entry and entry_ms(entry) or 0, state.last,
  state.removals, state.returns, state.keyed}

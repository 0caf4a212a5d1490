-- Applies the limit of messages a key to what was there before it was set: a page of messages, newest first.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] hidden
-- KEYS[5] by_key
-- KEYS[6] latest
-- KEYS[7] went
-- ARGV[1] page: most messages in one call
-- returns: messages and bytes that went, 1 when done
-- errors: OKMQ_NO_STREAM
-- include: state, gone, floor, removal, per_key
local meta = KEYS[2]
local stream = {log = KEYS[1], gone = KEYS[3], hidden = KEYS[4], by_key = KEYS[5], latest = KEYS[6], went = KEYS[7]}
local page = tonumber(ARGV[1])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
if not state.max_messages_per_key then
  redis.call('UNLINK', stream.latest)
  return {0, 0, 1}
end
if state.indexed == 1 and state.max_messages_per_key >= state.indexed_for then return {0, 0, 1} end
local now = state_now(state)
raise_floor(stream.log, stream.gone, state, floor_by_limits(stream.log, stream.gone, state, now))
page = math.max(1, math.min(page, math.floor(4194304 / math.max(1, state.widest))))
local messages, bytes, done = per_key_index(stream, state, now, page)
state_save(meta, state)
return {messages, bytes, done and 1 or 0}

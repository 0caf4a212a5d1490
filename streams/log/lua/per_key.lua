-- Applies the limit of messages a key to what was there before it was set, newest first, for as long as a budget lasts.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] hidden
-- KEYS[5] by_key
-- KEYS[6] latest
-- KEYS[7] went
-- KEYS[8] expiry
-- returns: messages and bytes that went, 1 when done
-- errors: OKMQ_NO_STREAM
-- include: clock, state, gone, floor, removal, budget, per_key
local meta = KEYS[2]
local stream = {log = KEYS[1], gone = KEYS[3], hidden = KEYS[4], by_key = KEYS[5], latest = KEYS[6], went = KEYS[7], expiry = KEYS[8]}

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
if not state.max_messages_per_key then
  redis.call('UNLINK', stream.latest)
  return {0, 0, 1}
end
if state.indexed == 1 and state.max_messages_per_key >= state.indexed_for then return {0, 0, 1} end
raise_floor(stream.log, stream.gone, state, floor_by_limits(stream.log, stream.gone, state))
local messages, bytes, done, counts = per_key_index(stream, state, budget_begin(1, 2))
state_save(meta, state)
per_key_remember(stream, state, counts)
return {messages, bytes, done and 1 or 0}

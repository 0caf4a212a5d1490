-- Says how a stream stands, with what has just expired already gone.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] by_key
-- KEYS[5] expiry
-- returns: last, last_ms, first, first_ms, messages, bytes, committed, lag, keys, duplicates, archived, cum, floor,
--   widest, now, by_hand and its bytes (what people took away), messages that a limit a key has yet to look at, and that the
--   history did not get in time, 1 when what limits took is still to be noted (trim: limits),
--   2 when more is over by its own time than was looked at (expire)
-- errors: OKMQ_NO_STREAM
-- flags: no-writes
-- include: clock, state, gone, floor
local log, meta, gone, by_key, expiry = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local now = state_now(state)
-- Messages whose own time is over and that nobody has taken away yet; so many are looked at. They count for no limit.
local INSPECT_MOST = 200
local due, over = redis.call('ZRANGEBYSCORE', expiry, '-inf', steady_ms(), 'LIMIT', 0, INSPECT_MOST), {}
for _, offset in ipairs(due) do
  offset = tonumber(offset)
  local held = offset >= state.floor and not gone_has(gone, offset)
    and redis.call('XRANGE', log, offset, offset)[1]
  if held then
    over[offset] = #held[2][4]
    state.messages, state.bytes = state.messages - 1, state.bytes - over[offset]
  end
end
local noted = state.floor
raise_floor(log, gone, state, floor_by_limits(log, gone, state))
local raised = state.floor > noted
for offset, size in pairs(over) do
  if offset < state.floor then -- taken off twice
    state.messages, state.bytes, over[offset] = state.messages + 1, state.bytes + size, nil
  end
end
while over[state.floor] do state.floor = gone_next(gone, state.floor + 1) end
local entry = redis.call('XRANGE', log, state.floor, state.floor)[1]
local first_ms = entry and entry_ms(entry) or 0
local after = math.max(state.committed, state.floor - 1)
local lag = state.last - after - gone_between(gone, after + 1, state.last)
for offset in pairs(over) do if offset > after then lag = lag - 1 end end
local unlooked = 0
if state.max_messages_per_key and (state.indexed == 0 or state.max_messages_per_key < state.indexed_for) then
  unlooked = state.messages
elseif state.max_messages_per_key and state.indexed > state.floor then
  unlooked = state.indexed - state.floor - gone_between(gone, state.floor, state.indexed - 1)
end
return {state.last, state.last_ms, state.floor, first_ms, state.messages, state.bytes, state.committed, lag,
  redis.call('HLEN', by_key), state.duplicates, state.archived, state.cum, state.floor, state.widest, now,
  state.by_hand, state.by_hand_bytes, unlooked, state.missed, #due == INSPECT_MOST and 2 or raised and 1 or 0}

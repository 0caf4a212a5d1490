-- Takes away messages whose own time to live is over: uncounted at once, removed when the history has them.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] expiry
-- ARGV[1] slice: most messages in one call
-- ARGV[2] hold_ms: how long one is kept for the history
-- returns: messages that expired now, 1 when none is left to look at
-- errors: OKMQ_NO_STREAM
-- include: state, floor
local log, meta, gone, expiry = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local slice, hold_ms = tonumber(ARGV[1]), tonumber(ARGV[2])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local now = state_now(state)
local due = redis.call('ZRANGEBYSCORE', expiry, '-inf', now, 'LIMIT', 0, slice)
local expired = 0
for _, offset in ipairs(due) do
  local entry = tonumber(offset) >= state.floor and redis.call('XRANGE', log, offset, offset)[1]
  local held = false
  if entry then
    local size, expires = #entry[2][4], tonumber(entry[2][#entry[2]])
    if redis.call('ZADD', gone, offset, offset .. ':' .. size) == 1 then
      expired = expired + 1
      state.messages, state.bytes = state.messages - 1, state.bytes - size
    end
    held = state.archive == 1 and tonumber(offset) > state.archived and now < expires + hold_ms
    if not held then redis.call('XDEL', log, entry[1]) end
  end
  if held then redis.call('ZADD', expiry, now + 10000, offset) else redis.call('ZREM', expiry, offset) end
end
state_save(meta, state)
return {expired, #due < slice and 1 or 0}

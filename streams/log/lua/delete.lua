-- Deletes single messages; their offsets stay empty for ever.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] expiry
-- ARGV[1] denial: the setting that forbids it, deny_delete or deny_purge
-- ARGV[2...] offsets: at most 1000
-- returns: messages and bytes that went
-- errors: OKMQ_NO_STREAM OKMQ_SEALED OKMQ_DENIED
-- include: state, floor
local log, meta, gone, expiry = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local denial = ARGV[1]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
if state.sealed == 1 then return redis.error_reply('OKMQ_SEALED') end
if state[denial] == 1 then return redis.error_reply('OKMQ_DENIED ' .. denial) end

raise_floor(log, gone, state, floor_by_limits(log, gone, state, state_now(state)))
local messages, bytes = 0, 0
for n = 2, #ARGV do
  local entry = redis.call('XRANGE', log, ARGV[n], ARGV[n])[1]
  if entry and tonumber(ARGV[n]) >= state.floor then
    local size = #entry[2][4]
    redis.call('XDEL', log, entry[1])
    redis.call('ZREM', expiry, ARGV[n])
    -- An expired one that the history still waited for was uncounted when it expired.
    if redis.call('ZADD', gone, ARGV[n], ARGV[n] .. ':' .. size) == 1 then
      messages, bytes = messages + 1, bytes + size
    end
  end
end
state.messages, state.bytes = state.messages - messages, state.bytes - bytes
local first = redis.call('XRANGE', log, state.floor, '+', 'COUNT', 1)[1]
raise_floor(log, gone, state, first and entry_offset(first) or state.last + 1)
state_save(meta, state)
return {messages, bytes}

-- Deletes single messages; their offsets stay empty for ever. What is over by its own time, and what a limit had hidden and
-- the history still waited for, goes, too, uncounted.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] hidden
-- KEYS[5] by_key
-- KEYS[6] latest
-- KEYS[7] went
-- KEYS[8] expiry
-- ARGV[1] denial: the setting that forbids it, deny_delete or deny_purge
-- ARGV[2...] offsets: at most 1000
-- returns: messages and bytes that went
-- errors: OKMQ_NO_STREAM OKMQ_SEALED OKMQ_DENIED
-- flags: allow-oom
-- include: clock, state, gone, floor, removal
local meta = KEYS[2]
local stream = {log = KEYS[1], gone = KEYS[3], hidden = KEYS[4], by_key = KEYS[5], latest = KEYS[6], went = KEYS[7], expiry = KEYS[8]}
local denial = ARGV[1]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
if state.sealed == 1 then return redis.error_reply('OKMQ_SEALED') end
if state[denial] == 1 then return redis.error_reply('OKMQ_DENIED ' .. denial) end

raise_floor(stream.log, stream.gone, state, floor_by_limits(stream.log, stream.gone, state))
local removal, over, taken = removal_begin(), removal_begin(), {}
for n = 2, #ARGV do
  local entry = redis.call('XRANGE', stream.log, ARGV[n], ARGV[n])[1]
  if entry and tonumber(ARGV[n]) >= state.floor then
    removal_take(entry_visible(stream.gone, state, entry) and removal or over, entry)
    taken[#taken + 1] = ARGV[n]
  end
end
removal_end(stream, state, over, true)
removal_end(stream, state, removal, true)
if #taken > 0 then redis.call('ZREM', stream.expiry, unpack(taken)) end
state_by_hand(state, removal.messages, removal.bytes)
state_save(meta, state)
return {removal.messages, removal.bytes}

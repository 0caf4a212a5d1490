-- Counts how many single messages that were set aside can come back, a slice of them, the newest first. What is not there
-- any more or is over can not, and where the limits have no room for all the oldest stay away. From now on none are added.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] aside
-- KEYS[5] removals
-- ARGV[1] number: of the removal
-- ARGV[2] slice: most messages in one call
-- ARGV[3] seen: how many were looked at before
-- ARGV[4] messages: of these, that can come back
-- ARGV[5] bytes: of these
-- returns: messages and bytes that can come back, how many were looked at, 1 when done, how many the removal took that
--   an undo before has not brought back
-- errors: OKMQ_NO_STREAM OKMQ_SEALED OKMQ_NO_REMOVAL OKMQ_UNDO_LATER
-- include: clock, state, gone, floor, taken, group, removal, aside
local meta, aside, removals = KEYS[2], KEYS[4], KEYS[5]
local stream = {log = KEYS[1], gone = KEYS[3]}
local number, slice, seen = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local messages, bytes = tonumber(ARGV[4]), tonumber(ARGV[5])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
if state.sealed == 1 then return redis.error_reply('OKMQ_SEALED') end
raise_floor(stream.log, stream.gone, state, floor_by_limits(stream.log, stream.gone, state))
local record, later = aside_open(stream.gone, aside_load(removals), state, number)
if not record and later > 0 then return redis.error_reply('OKMQ_UNDO_LATER ' .. later) end
if not record then return redis.error_reply('OKMQ_NO_REMOVAL') end
aside_close(removals, number)
local took = record.messages - aside_came(removals, number)
local members = redis.call('ZREVRANGEBYSCORE', aside, number, number, 'LIMIT', seen, slice)
for _, member in ipairs(members) do
  local entry = aside_entry(stream, state, tonumber(member))
  if entry then
    if not aside_fits(state, messages + 1, bytes + #entry[2][4]) then return {messages, bytes, seen, 1, took} end
    messages, bytes = messages + 1, bytes + #entry[2][4]
  end
  seen = seen + 1
end
return {messages, bytes, seen, #members < slice and 1 or 0, took}

-- Brings back a slice of single messages that were set aside; undo_look says before whether all can come back.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] aside
-- KEYS[5] removals
-- KEYS[6...] of_groups: of each group its hash, pending, due, leases, turns, parked, ready, parked_aside, members and shelved
-- ARGV[1] wake: channel
-- ARGV[2] number: of the removal
-- ARGV[3] stay: so many of the oldest stay away, for which there is no room, or that could not come back
-- ARGV[4] messages: of the others, that could come back when they were looked at
-- ARGV[5] bytes: of these
-- ARGV[6] passed: so many that could come back were passed over before, for which there was no room any more
-- ARGV[7] slice: most messages in one call
-- ARGV[8...] names: of the groups, in the order of their keys
-- returns: messages and bytes that came back, 1 when done, how many of this slice did not, messages and bytes of these that were
--   passed over; with any the removal does not end
-- errors: OKMQ_NO_STREAM OKMQ_SEALED OKMQ_NO_REMOVAL OKMQ_UNDO_LATER
-- include: clock, state, gone, floor, taken, members, group, order, removal, aside, aside_groups
local meta, aside, removals = KEYS[2], KEYS[4], KEYS[5]
local stream = {log = KEYS[1], gone = KEYS[3]}
local wake, number, stay, names = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), {}
local planned, planned_bytes, passed, slice = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
for n = 8, #ARGV do names[n - 7] = ARGV[n] end

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
if state.sealed == 1 then return redis.error_reply('OKMQ_SEALED') end
local held = aside_load(removals)
raise_floor(stream.log, stream.gone, state, floor_by_limits(stream.log, stream.gone, state))
local record, later = aside_open(stream.gone, held, state, number)
if not record and later > 0 then return redis.error_reply('OKMQ_UNDO_LATER ' .. later) end
if not record then return redis.error_reply('OKMQ_NO_REMOVAL') end
local waiting = redis.call('ZCOUNT', aside, number, number)
stay = math.min(waiting, stay)
-- What was published since it was looked at may have taken room: it is not taken away for this, and the oldest stay away.
local over = state.max_messages and state.messages + planned - state.max_messages or 0
local over_bytes = state.max_bytes and state.bytes + planned_bytes - state.max_bytes or 0

local readers, entries, sums = aside_readers(record, names, KEYS, 6), {}, {}
local offsets = redis.call('ZRANGEBYSCORE', aside, number, number, 'LIMIT', stay, slice)
local messages, bytes, back, over_now, over_now_bytes = state.messages, state.bytes, {}, 0, 0
for _, member in ipairs(offsets) do
  local entry = aside_entry(stream, state, tonumber(member))
  if entry and (over > over_now or over_bytes > over_now_bytes) then
    over_now, over_now_bytes = over_now + 1, over_now_bytes + #entry[2][4]
  elseif entry then
    aside_bring_back(stream, state, sums, entry)
    entries[#entries + 1], back[#back + 1] = entry, member
  end
end
table.sort(entries, function(one, other) return entry_offset(one) < entry_offset(other) end)
for _, reader in ipairs(readers) do
  aside_give_back(reader, reader.group, reader.delivered, entries)
  group_save(reader.key, reader.group)
end
local same, others = {}, {}
for _, reader in ipairs(readers) do same[reader.name] = true end
for n, name in ipairs(names) do
  if not same[name] then others[#others + 1] = {key = KEYS[6 + 10 * (n - 1)], members = KEYS[6 + 10 * (n - 1) + 8]} end
end
aside_return(others, entries)
gone_settle(stream.gone, sums)
if #back > 0 then redis.call('ZREM', aside, unpack(back)) end
aside_look_again(state, record.first)
local done, left, ends = stay + #offsets == waiting, #offsets - #back, false
if done and stay + left == 0 then
  ends = true
  aside_forget(removals, number)
  held[number] = nil
  aside_settle(meta, stream.gone, held, state)
elseif done and passed + over_now == 0 then
  ends = true
  redis.call('HSET', removals, number .. ':until', 0) -- what stays away goes for good
end
raise_floor(stream.log, stream.gone, state, gone_next(stream.gone, state.floor))
raise_floor(stream.log, stream.gone, state, floor_by_limits(stream.log, stream.gone, state))
state_by_hand(state, messages - state.messages, bytes - state.bytes)
state_save(meta, state)
redis.call('PUBLISH', wake, 'due')
if not ends then redis.call('HINCRBY', removals, 'came:' .. number, state.messages - messages) end
return {state.messages - messages, state.bytes - bytes, done and 1 or 0, left, over_now, over_now_bytes}

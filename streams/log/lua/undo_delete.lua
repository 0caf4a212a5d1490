-- Brings back a slice of single messages that were set aside; undo_look says before whether all can come back.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] aside
-- KEYS[5] removals
-- KEYS[6...] of_groups: of each group its hash, pending, due, leases, turns, parked, ready, parked_aside, members and shelved
-- ARGV[1] wake: channel
-- ARGV[2] number: of the removal
-- ARGV[3] stay: so many of the oldest stay away, for which there is no room
-- ARGV[4] slice: most messages in one call
-- ARGV[5...] names: of the groups, in the order of their keys
-- returns: messages and bytes that came back, 1 when done
-- errors: OKMQ_NO_STREAM OKMQ_SEALED OKMQ_NO_REMOVAL OKMQ_UNDO_LATER
-- include: state, gone, floor, members, group, order, removal, aside, aside_groups
local meta, aside, removals = KEYS[2], KEYS[4], KEYS[5]
local stream = {log = KEYS[1], gone = KEYS[3]}
local wake, number, stay, slice, names = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), {}
for n = 5, #ARGV do names[n - 4] = ARGV[n] end

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
if state.sealed == 1 then return redis.error_reply('OKMQ_SEALED') end
local now, held = state_now(state), aside_load(removals)
raise_floor(stream.log, stream.gone, state, floor_by_limits(stream.log, stream.gone, state, now))
local record, later = aside_open(stream.gone, held, state, number)
if not record and later > 0 then return redis.error_reply('OKMQ_UNDO_LATER ' .. later) end
if not record then return redis.error_reply('OKMQ_NO_REMOVAL') end
-- What was published since it was looked at may have taken room: it is not taken away for this.
local waiting = redis.call('ZCOUNT', aside, number, number)
local room = state.max_messages and math.max(0, state.max_messages - state.messages) or waiting
stay = math.min(waiting, math.max(stay, waiting - room))

local readers, entries, sums = aside_readers(record, names, KEYS, 6), {}, {}
local offsets = redis.call('ZRANGEBYSCORE', aside, number, number, 'LIMIT', stay, slice)
local messages, bytes = state.messages, state.bytes
for _, member in ipairs(offsets) do
  local entry = aside_entry(stream, state, now, tonumber(member))
  if entry then
    aside_bring_back(stream, state, sums, entry)
    entries[#entries + 1] = entry
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
if #offsets > 0 then redis.call('ZREM', aside, unpack(offsets)) end
aside_look_again(state, record.first)
local done = stay + #offsets == waiting
if done and stay == 0 then
  aside_forget(removals, number)
  held[number] = nil
  state.kept = aside_lowest(stream.gone, held, state)
elseif done then
  redis.call('HSET', removals, number .. ':until', 0) -- what stays away goes for good
end
raise_floor(stream.log, stream.gone, state, gone_next(stream.gone, state.floor))
raise_floor(stream.log, stream.gone, state, floor_by_limits(stream.log, stream.gone, state, now))
state_by_hand(state, messages - state.messages, bytes - state.bytes)
state_save(meta, state)
redis.call('PUBLISH', wake, 'due')
if not done then redis.call('HINCRBY', removals, 'came:' .. number, state.messages - messages) end
return {state.messages - messages, state.bytes - bytes, done and 1 or 0}

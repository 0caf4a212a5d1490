-- Brings back a slice of single messages that were set aside.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] aside
-- KEYS[5] removals
-- KEYS[6...] of_groups: of each group its hash, pending, due, leases, turns, parked, ready, parked_aside, members and shelved
-- ARGV[1] wake: channel
-- ARGV[2] number: of the removal
-- ARGV[3] partial: 1 takes what the limits leave of it
-- ARGV[4] slice: most messages in one call
-- ARGV[5...] names: of the groups, in the order of their keys
-- returns: messages and bytes that came back, 1 when done
-- errors: OKMQ_NO_STREAM OKMQ_SEALED OKMQ_NO_REMOVAL OKMQ_UNDO_LATER OKMQ_UNDO_PART
-- include: state, gone, floor, members, group, order, removal, aside, aside_groups
local meta, aside, removals = KEYS[2], KEYS[4], KEYS[5]
local stream = {log = KEYS[1], gone = KEYS[3]}
local wake, number, partial, slice, names = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1', tonumber(ARGV[4]), {}
for n = 5, #ARGV do names[n - 4] = ARGV[n] end

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
if state.sealed == 1 then return redis.error_reply('OKMQ_SEALED') end
local now, held = state_now(state), aside_load(removals)
raise_floor(stream.log, stream.gone, state, floor_by_limits(stream.log, stream.gone, state, now))
local record, later = aside_open(held, state, number)
if not record and later > 0 then return redis.error_reply('OKMQ_UNDO_LATER ' .. later) end
if not record then return redis.error_reply('OKMQ_NO_REMOVAL') end
local waiting = redis.call('ZCOUNT', aside, number, number)
if not partial then
  local taken = state.max_messages and math.max(0, state.messages + waiting - state.max_messages) or 0
  if state.max_bytes and state.bytes + record.bytes > state.max_bytes then taken = math.max(taken, 1) end
  local first = redis.call('XRANGE', stream.log, record.first, record.first)[1]
  local is_old = not first or (state.ttl and entry_ms(first) <= now - state.ttl * 1000)
  if not aside_stays(state, record.first) or is_old then taken = math.max(taken, 1) end
  if taken > 0 or waiting < record.messages then
    return redis.error_reply(string.format('OKMQ_UNDO_PART %.0f %.0f', math.max(0, waiting - taken), record.messages))
  end
end

local readers, entries, sums = aside_readers(record, names, KEYS, 6), {}, {}
local offsets = redis.call('ZRANGEBYSCORE', aside, number, number, 'LIMIT', 0, slice)
local messages, bytes = state.messages, state.bytes
for _, member in ipairs(offsets) do
  local offset = tonumber(member)
  local entry = aside_stays(state, offset) and redis.call('XRANGE', stream.log, offset, offset)[1]
  local fields = entry and entry[2]
  if entry and not (fields[#fields - 1] == 'x' and tonumber(fields[#fields]) <= now) then
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
local done = #offsets < slice or waiting == slice
if done then
  aside_forget(removals, number)
  held[number] = nil
  state.kept = aside_lowest(held, state)
end
raise_floor(stream.log, stream.gone, state, gone_next(stream.gone, state.floor))
raise_floor(stream.log, stream.gone, state, floor_by_limits(stream.log, stream.gone, state, now))
state_save(meta, state)
redis.call('PUBLISH', wake, 'due')
return {state.messages - messages, state.bytes - bytes, done and 1 or 0}

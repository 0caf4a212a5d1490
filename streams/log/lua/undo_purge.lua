-- Brings back what a purge set aside: lowers the floor.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] removals
-- KEYS[5...] of_groups: of each group its hash, pending, due, leases, turns, parked, ready, parked_aside, members and shelved
-- ARGV[1] wake: channel
-- ARGV[2] number: of the removal
-- ARGV[3] partial: 1 takes what the limits leave of it
-- ARGV[4...] names: of the groups, in the order of their keys
-- returns: messages and bytes that came back
-- errors: OKMQ_NO_STREAM OKMQ_SEALED OKMQ_NO_REMOVAL OKMQ_UNDO_LATER OKMQ_UNDO_PART
-- include: clock, state, gone, floor, taken, members, group, order, removal, aside, aside_groups
local log, meta, gone, removals = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local wake, number, partial, names = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1', {}
for n = 4, #ARGV do names[n - 3] = ARGV[n] end

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
if state.sealed == 1 then return redis.error_reply('OKMQ_SEALED') end
local held = aside_load(removals)
raise_floor(log, gone, state, floor_by_limits(log, gone, state))
local record, later = aside_open(gone, held, state, number)
if not record and later > 0 then return redis.error_reply('OKMQ_UNDO_LATER ' .. later) end
if not record then return redis.error_reply('OKMQ_NO_REMOVAL') end

local left, size, first = 0, 0, record.first
local lowest = aside_from(gone, state, record)
if lowest then
  aside_shorten(log, state, record, lowest)
  local count, bytes = gone_between(gone, record.first, state.floor - 1)
  local visible, visible_bytes, floor_cum = state.messages, state.bytes, state.floor_cum
  state.messages = visible + state.floor - record.first - count
  state.bytes = visible_bytes + floor_cum - record.cum - bytes
  state.floor, state.floor_cum = record.first, record.cum
  raise_floor(log, gone, state, gone_next(gone, record.first))
  raise_floor(log, gone, state, floor_by_limits(log, gone, state))
  left, size = state.messages - visible, state.bytes - visible_bytes
end
if left <= 0 or (left < record.messages and not partial) then
  return redis.error_reply(string.format('OKMQ_UNDO_PART %.0f %.0f', math.max(0, left), record.messages))
end

local back = {}
for _, reader in ipairs(aside_readers(record, names, KEYS, 5)) do
  local group, stop, missed = reader.group, record.upto - 1, reader.delivered
  if #group.filter > 0 or #reader.was > 0 then
    -- It has counted up to where it is what it lost, and gets that back; the rest is ahead of it.
    stop = math.min(stop, group.delivered)
  elseif group.delivered <= stop then
    -- Nothing of what came after was given to it: it goes on where it was.
    if group.delivered > missed then group.missed, group.delivered = group.missed - (group.delivered - missed), missed end
    missed = stop
  end
  local from = redis.call('ZCOUNT', reader.parked_aside, record.first, stop) > 0 and record.first or missed + 1
  -- Until it has again what was out, it is given nothing: that holds places, and turns of keys.
  local has_out = redis.call('ZCOUNT', reader.shelved, record.first, stop) > 0
  if has_out then group.returning = group.returning + 1 end
  group_save(reader.key, group)
  back[#back + 1] = {reader.name, string.format('%.0f', group.generation), has_out and string.format('%.0f', record.first) or '0',
    string.format('%.0f', math.max(from, record.first)), string.format('%.0f', stop), string.format('%.0f', missed), reader.was}
end
if #back > 0 then redis.call('HSET', removals, 'back:' .. number, cjson.encode(back)) end
taken_add(meta, state, first, record.first)
gone_came_back(gone, record.first, record.upto)
aside_forget(removals, number)
held[number] = nil
aside_settle(meta, gone, held, state)
aside_look_again(state, record.first)
state_by_hand(state, -left, -size)
state_save(meta, state)
redis.call('PUBLISH', wake, 'due')
return {left, size}

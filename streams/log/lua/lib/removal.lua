-- Taking messages away from between others: invisible and uncounted at once, physically gone at once, too, unless the
-- history has yet to copy them; these are "hidden" until drop.lua removes them. Needs state, gone and floor.
-- A removal collects entries and then takes all of them together, neighbours as one run. The stream's keys come as one
-- table: log, gone, hidden, by_key, latest, went, expiry; with groups, where nobody has made dead letters of what is spent
-- before: an entry then stays until the worker has.

-- So many removals at most are kept for groups with a filter; the worker has them counted long before.
local REMOVAL_JOURNAL = 100000

-- Arguments of one command, an even number.
local REMOVAL_CHUNK = 4000

-- In the index of a stream that keeps the newest of each key; NUL is in no key, so a key's members stand together.
local function latest_member(key, offset) return key .. '\0' .. string.format('%016d', offset) end

-- messages and bytes: how many have counted so far. is_replaced, set by who takes what is older than what the index of the newest
-- a key holds: it is not in there, and no key is forgotten.
local function removal_begin()
  return {offsets = {}, entries = {}, sums = {}, members = {}, notes = {}, messages = 0, bytes = 0}
end

local function removal_take(removal, entry)
  local offset = entry_offset(entry)
  if not removal.entries[offset] then removal.offsets[#removal.offsets + 1] = offset end
  removal.entries[offset] = entry
end

local function removal_in_chunks(values, send)
  for first = 1, #values, REMOVAL_CHUNK do
    send(unpack(values, first, math.min(first + REMOVAL_CHUNK - 1, #values)))
  end
end

-- Writes a message that went into the journal of groups with a filter, which count by key what went (see losses.lua).
local function removal_journal(stream, state, removal, offset, key)
  state.removals = state.removals + 1
  if not key then return end
  if removal.is_noted == nil then removal.is_noted = redis.call('EXISTS', stream.went) == 1 end
  if removal.is_noted then
    local notes = removal.notes
    notes[#notes + 1] = string.format('%.0f', state.removals)
    notes[#notes + 1] = string.format('%.0f/%.0f:%s', offset, state.removals, key)
  end
end

-- Counts a message that is no longer visible: off the stream's counters, and out of the index of the newest a key.
local function removal_count(stream, state, removal, offset, size, key)
  state.messages, state.bytes = state.messages - 1, state.bytes - size
  removal.messages, removal.bytes = removal.messages + 1, removal.bytes + size
  if key and state.max_messages_per_key and not removal.is_replaced then
    removal.members[#removal.members + 1] = latest_member(key, offset)
  end
  removal_journal(stream, state, removal, offset, key)
end

-- Notes and counts the entries that had not gone before, in the order of their offsets.
local function removal_note_gone(stream, state, removal)
  local went, floor, first, last, bytes = gone_looker(stream.gone), state.floor, nil, nil, 0
  local function note() if first then gone_add_run(stream.gone, removal.sums, floor, first, last, bytes) end end
  for _, offset in ipairs(removal.offsets) do
    local fields = removal.entries[offset][2]
    if not went(offset) and offset < floor then
      -- A purge has set it aside: it is counted already, but for groups that have not come by. To be told from what had gone
      -- from between others before the purge came.
      gone_add_run(stream.gone, removal.sums, floor, offset, offset, #fields[4], GONE_OVER)
      removal_journal(stream, state, removal, offset, fields[7] == 'k' and fields[8])
    elseif not went(offset) then
      if not first or offset ~= last + 1 or offset % GONE_BLOCK == 0 or offset == floor then
        note()
        first, bytes = offset, 0
      end
      last, bytes = offset, bytes + #fields[4]
      removal_count(stream, state, removal, offset, #fields[4], fields[7] == 'k' and fields[8])
    end
  end
  note()
end

-- Forgets the keys whose newest message is among these, of which older ones may be left.
local function removal_forget_keys(stream, state, keys, offsets)
  if #keys == 0 then return end
  local over = {}
  for n, held in ipairs(redis.call('HMGET', stream.by_key, unpack(keys))) do
    if held == offsets[n] then
      over[#over + 1] = keys[n]
      state.loose = math.max(state.loose, tonumber(held))
    end
  end
  if #over > 0 then redis.call('HDEL', stream.by_key, unpack(over)) end
end

-- Removes entries physically. is_replaced: as of a removal.
local function removal_delete(stream, state, entries, is_replaced)
  local ids, offsets, keys, offsets_of_keys = {}, {}, {}, {}
  for n, entry in ipairs(entries) do ids[n] = entry[1] end
  redis.call('XDEL', stream.log, unpack(ids))
  if is_replaced and state.hidden ~= 1 then return end
  for n, entry in ipairs(entries) do
    offsets[n] = string.match(entry[1], '^%d+')
    if not is_replaced and entry[2][7] == 'k' then keys[#keys + 1], offsets_of_keys[#keys + 1] = entry[2][8], offsets[n] end
  end
  if state.hidden == 1 then redis.call('ZREM', stream.hidden, unpack(offsets)) end
  removal_forget_keys(stream, state, keys, offsets_of_keys)
end

-- Hides what the history or a group still needs, and removes the rest, physically.
local function removal_clear(stream, state, removal, by_hand)
  local hidden, free = {}, {}
  local for_groups = not by_hand and stream.groups and redis.call('EXISTS', stream.groups) == 1
  for _, offset in ipairs(removal.offsets) do
    if not by_hand and (for_groups or state.archive == 1 and offset > state.archived) then
      local text = string.format('%d', offset)
      hidden[#hidden + 1], hidden[#hidden + 2] = text, text
    else
      free[#free + 1] = removal.entries[offset]
    end
    if #free == 1000 then
      removal_delete(stream, state, free, removal.is_replaced)
      free = {}
    end
  end
  if #hidden > 0 then state.hidden = 1 end
  removal_in_chunks(hidden, function(...) redis.call('ZADD', stream.hidden, ...) end)
  if #free > 0 then removal_delete(stream, state, free, removal.is_replaced) end
end

-- Takes away what was collected, for the history too where it is by hand, and raises the floor over it. What was taken
-- before goes physically and counts no more.
local function removal_end(stream, state, removal, by_hand)
  if #removal.offsets == 0 and not next(removal.sums) then return end
  table.sort(removal.offsets)
  removal_note_gone(stream, state, removal)
  removal_clear(stream, state, removal, by_hand)
  removal.offsets, removal.entries = {}, {}
  if not next(removal.sums) then return end
  gone_settle(stream.gone, removal.sums)
  removal_in_chunks(removal.members, function(...) redis.call('ZREM', stream.latest, ...) end)
  removal_in_chunks(removal.notes, function(...) redis.call('ZADD', stream.went, ...) end)
  if removal.is_noted then redis.call('ZREMRANGEBYRANK', stream.went, 1, -REMOVAL_JOURNAL - 1) end
  removal.sums, removal.members, removal.notes = {}, {}, {}
  raise_floor(stream.log, stream.gone, state, gone_next(stream.gone, state.floor))
end

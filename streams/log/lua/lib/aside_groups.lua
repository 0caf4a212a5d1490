-- What groups get back of what was removed for a while: out again, or not delivered yet. Needs state, gone, floor,
-- members, group, order and aside.

-- Lets messages be delivered that a group has passed already, lowest first: they wait for their turn, or it has come.
-- reader.after: of each key the last one that got its place back; set to what it is afterwards.
local function aside_park(reader, group, entries)
  local order, ready, parked = nil, {}, {}
  for n, entry in ipairs(entries) do
    local offset = string.match(entry[1], '^(%d+)')
    parked[2 * n - 1], parked[2 * n] = offset, offset
  end
  if #parked > 0 then redis.call('ZADD', reader.parked, unpack(parked)) end
  if group_in_turns(group) and group.ack ~= 'none' then
    local keys = {}
    for _, entry in ipairs(entries) do if entry[2][7] == 'k' then keys[#keys + 1] = entry[2][8] end end
    order = order_open(reader.turns, keys)
    for _, key in ipairs(keys) do order.after[key] = reader.after and reader.after[key] end
    reader.after = order.after
  end
  for _, entry in ipairs(entries) do
    local offset = string.match(entry[1], '^(%d+)')
    local key, comes = order and entry[2][7] == 'k' and entry[2][8], true
    if key then
      -- One that was not passed over meanwhile has its place still.
      local stayed = redis.call('HEXISTS', reader.turns, offset) == 1
      if stayed then comes = order.ends[key].head == offset else comes = order_restore(order, reader, offset, key) end
    end
    if comes then ready[#ready + 1], ready[#ready + 2] = offset, offset end
  end
  if order then order_write(order) end
  if group_in_turns(group) and #ready > 0 then redis.call('ZADD', reader.ready, unpack(ready)) end
  if group.ordered == TURNS.off then group.ordered = TURNS.loose end
end

-- What was out when it went, and was not answered since, comes again.
local function aside_again(reader, group, offset, key)
  if redis.call('ZADD', reader.pending, 'NX', offset, offset) == 0 then return end
  if redis.call('ZREM', reader.shelved, offset) == 1 then group.unfinished = math.max(0, group.unfinished - 1) end
  local held = lease_read(reader.leases, offset)
  if held.sequence ~= '0' then members_tell(group, held.consumer, 1, held.at_ms) end
  local first = not (key and group_in_turns(group)) or order_return(reader, offset, key)
  group_look_again(group, 0)
  if first then redis.call('ZADD', reader.due, 'NX', 0, offset) else redis.call('ZREM', reader.due, offset) end
end

-- Gives entries, lowest first, back to a group as they were for it: out, or not delivered yet. delivered: its position when
-- they went, and reader.moved where it was at later parts (aside_note_moved); reader.was: its filter then, by which they were
-- counted as lost.
local function aside_give_back(reader, group, delivered, entries)
  local missed, moved, at = {}, reader.moved or {}, 0
  for _, entry in ipairs(entries) do
    local offset = string.match(entry[1], '^(%d+)')
    while moved[at + 1] and tonumber(moved[at + 1][1]) <= tonumber(offset) do
      at = at + 1
      delivered = tonumber(moved[at][2])
    end
    if redis.call('HEXISTS', reader.leases, offset) == 1 then
      aside_again(reader, group, offset, entry[2][7] == 'k' and entry[2][8])
    elseif redis.call('ZSCORE', reader.parked_aside, offset) then
      redis.call('ZREM', reader.parked_aside, offset)
      -- A filter that came meanwhile holds for it, too.
      local is_wanted, is_parked = group_wants(group, entry), redis.call('ZSCORE', reader.parked, offset)
      if not is_parked then group.missed = group.missed - 1 end
      if is_wanted and not is_parked then missed[#missed + 1] = entry end
      if is_parked and not is_wanted then redis.call('ZREM', reader.parked, offset) end
    elseif tonumber(offset) > delivered and tonumber(offset) <= group.delivered then
      if group_wants(group, entry) then missed[#missed + 1] = entry end
      if filter_lets(reader.was, entry) then group.missed = group.missed - 1 end
    elseif tonumber(offset) > group.delivered then
      -- With a filter what is ahead is counted from the journal, else by arithmetic, which counts what is there no more.
      local was_counted = filter_lets(reader.was, entry)
      if #group.filter > 0 and was_counted then group.missed = group.missed - 1 end
      if #group.filter == 0 and not was_counted then group.missed = group.missed + 1 end
    end
  end
  if #missed > 0 then aside_park(reader, group, missed) end
end

-- What comes back to groups that were made or sought after it went: nothing that had gone then counts as lost to them, as
-- long as it is ahead, and nor does it when it is there again. groups: of each its hash and members, those of before left out.
local function aside_return(groups, entries)
  for _, each in ipairs(groups) do
    local group = group_load(each.key, each.members)
    if group and #group.filter == 0 then
      for _, entry in ipairs(entries) do
        if entry_offset(entry) > group.delivered then group.missed = group.missed + 1 end
      end
      group_save(each.key, group)
    end
  end
end

-- The groups of before that are still the same: not made anew and not sought since.
local function aside_readers(record, names, keys, at)
  local positions, readers = {}, {}
  for _, each in ipairs(cjson.decode(record.groups)) do positions[each[1]] = each end
  for n, name in ipairs(names) do
    local first, position = at + 10 * (n - 1), positions[name]
    local group = position and group_load(keys[first], keys[first + 8])
    if group and string.format('%.0f', group.generation) == position[2] then
      readers[#readers + 1] = {name = name, key = keys[first], pending = keys[first + 1], due = keys[first + 2],
        leases = keys[first + 3], turns = keys[first + 4], parked = keys[first + 5], ready = keys[first + 6],
        parked_aside = keys[first + 7], shelved = keys[first + 9], group = group, delivered = tonumber(position[3]),
        was = position[4] or group.filter, moved = position[5]}
    end
  end
  return readers
end

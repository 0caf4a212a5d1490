-- What was removed for a while only. Its entries stay, below the floor or gone from between others, from state.kept on.
-- "removals" is a hash: "last", the newest number; of removal n the fields "n:facts" (the caller's JSON), "n:until" (unix
-- ms), "n:first", "n:upto" (the floor after it; 0 where single messages went), "n:cum" (bytes before first), "n:messages",
-- "n:bytes", "n:groups" (JSON: name, generation and position of each group then); and "back:n", what an undo has yet to
-- give back to groups. Single offsets stand in "aside", by number. Needs state, gone, floor, group, order and removal.

local ASIDE_MOST = 100

local function aside_load(removals)
  local held, flat = {}, redis.call('HGETALL', removals)
  for n = 1, #flat, 2 do
    local number, field = string.match(flat[n], '^(%d+):(%l+)$')
    if number then
      number = tonumber(number)
      held[number] = held[number] or {}
      held[number][field] = (field == 'facts' or field == 'groups') and flat[n + 1] or tonumber(flat[n + 1])
    end
  end
  return held
end

-- From where on something may still come back.
local function aside_lowest(held, state)
  local lowest
  for _, each in pairs(held) do
    if each.first >= state.kept then lowest = math.min(lowest or each.first, each.first) end
  end
  return lowest or 0
end

-- Every group as it stands, and as JSON for the record; nil when these are not all groups. keys: from at on, of each group
-- its hash, parked and parked_aside.
local function aside_positions(groups, names, keys, at)
  if redis.call('SCARD', groups) ~= #names then return nil end
  local positions, standing = {}, {}
  for n, name in ipairs(names) do
    local first = at + 3 * (n - 1)
    local group = redis.call('SISMEMBER', groups, name) == 1 and group_load(keys[first])
    if not group then return nil end
    positions[n] = {name, string.format('%.0f', group.generation), string.format('%.0f', group.delivered)}
    if group.ordered > 0 then standing[#standing + 1] = {parked = keys[first + 1], aside = keys[first + 2]} end
  end
  return standing, #positions > 0 and cjson.encode(positions) or '[]'
end

-- Remembers what of a range a group has parked.
local function aside_keep_parked(group, first, stop, scratch)
  redis.call('ZREMRANGEBYSCORE', group.aside, first, stop)
  redis.call('ZRANGESTORE', scratch, group.parked, first, stop, 'BYSCORE')
  redis.call('ZUNIONSTORE', group.aside, 2, group.aside, scratch, 'AGGREGATE', 'MAX')
  redis.call('DEL', scratch)
end

-- Begins a removal; none ends before an older one. Where there are too many the oldest ends. Returns number and end.
local function aside_begin(removals, state, keep_ms, facts, positions)
  local ends, oldest, count = state_now(state) + keep_ms, nil, 0
  for number, each in pairs(aside_load(removals)) do
    ends, count = math.max(ends, each['until']), count + 1
    if not oldest or number < oldest then oldest = number end
  end
  if count >= ASIDE_MOST then redis.call('HSET', removals, oldest .. ':until', 0) end
  local number = redis.call('HINCRBY', removals, 'last', 1)
  redis.call('HSET', removals, number .. ':facts', facts, number .. ':groups', positions, number .. ':until',
    string.format('%.0f', ends), number .. ':first', string.format('%.0f', state.last + 1), number .. ':upto', 0,
    number .. ':cum', 0, number .. ':messages', 0, number .. ':bytes', 0)
  return number
end

local function aside_forget(removals, number)
  for _, field in ipairs({'facts', 'groups', 'until', 'first', 'upto', 'cum', 'messages', 'bytes'}) do
    redis.call('HDEL', removals, number .. ':' .. field)
  end
end

-- One message more is visible again, and the lowest one is the floor.
local function aside_bring_back(stream, state, sums, entry)
  local offset, size = entry_offset(entry), #entry[2][4]
  gone_return(stream.gone, sums, offset, size)
  state.messages, state.bytes = state.messages + 1, state.bytes + size
  if offset < state.floor then state.floor, state.floor_cum = offset, tonumber(entry[2][6]) - size end
end

-- The removal, if it can be undone now; else nil and the number of the one that has to be undone before it, or 0.
local function aside_open(held, state, number)
  local record = held[number]
  if not record or record['until'] <= state_now(state) then return nil, 0 end
  for later, each in pairs(held) do
    if later > number and each.upto > record.first and each.first >= state.kept then return nil, later end
  end
  return record
end

-- Lets messages be delivered that a group has passed already: they wait for their turn, and it has come.
local function aside_park(reader, group, entries)
  local order, ready, parked = nil, {}, {}
  if group.ordered == 1 and group.ack ~= 'none' then
    local keys = {}
    for _, entry in ipairs(entries) do if entry[2][7] == 'k' then keys[#keys + 1] = entry[2][8] end end
    order = order_open(reader.turns, keys)
  end
  for _, entry in ipairs(entries) do
    local offset = string.match(entry[1], '^(%d+)')
    if not (order and redis.call('HEXISTS', reader.turns, offset) == 1) then
      parked[#parked + 1], parked[#parked + 2] = offset, offset
      if not (order and entry[2][7] == 'k') or order_join(order, offset, entry[2][8]) then
        ready[#ready + 1], ready[#ready + 2] = offset, offset
      end
    end
  end
  if order then order_write(order) end
  if #parked > 0 then redis.call('ZADD', reader.parked, unpack(parked)) end
  if #ready > 0 then redis.call('ZADD', reader.ready, unpack(ready)) end
  -- Not by key, but what is parked is to be handed out.
  if group.ordered == 0 then group.ordered = 2 end
end

-- What was out when it went, and was not answered since, comes again.
local function aside_again(reader, group, offset, key)
  if redis.call('ZADD', reader.pending, 'NX', offset, offset) == 0 then return end
  local first = not (key and group.ordered == 1) or order_rejoin(reader.turns, offset, key)
  group_look_again(group, 0)
  if first then redis.call('ZADD', reader.due, 'NX', 0, offset) else redis.call('ZREM', reader.due, offset) end
end

-- Gives entries back to a group as they were for it: out, or not delivered yet. delivered: its position when they went.
local function aside_give_back(reader, group, delivered, entries)
  local missed = {}
  for _, entry in ipairs(entries) do
    local offset = string.match(entry[1], '^(%d+)')
    if redis.call('HEXISTS', reader.leases, offset) == 1 then
      aside_again(reader, group, offset, entry[2][7] == 'k' and entry[2][8])
    elseif redis.call('ZSCORE', reader.aside, offset) then
      redis.call('ZREM', reader.aside, offset)
      if not redis.call('ZSCORE', reader.parked, offset) then
        missed[#missed + 1] = entry
        group.missed = group.missed - 1
      end
    elseif tonumber(offset) > delivered and tonumber(offset) <= group.delivered and group_wants(group, entry) then
      missed[#missed + 1] = entry
      group.missed = group.missed - 1
    elseif #group.filter > 0 and tonumber(offset) > group.delivered and group_wants(group, entry) then
      group.missed = group.missed - 1 -- what is ahead is counted from the journal, not by arithmetic
    end
  end
  if #missed > 0 then aside_park(reader, group, missed) end
end

-- The groups of before that are still the same: not made anew and not sought since.
local function aside_readers(record, names, keys, at)
  local positions, readers = {}, {}
  for _, each in ipairs(cjson.decode(record.groups)) do positions[each[1]] = each end
  for n, name in ipairs(names) do
    local first, position = at + 8 * (n - 1), positions[name]
    local group = position and group_load(keys[first])
    if group and string.format('%.0f', group.generation) == position[2] then
      readers[#readers + 1] = {name = name, key = keys[first], pending = keys[first + 1], due = keys[first + 2],
        leases = keys[first + 3], turns = keys[first + 4], parked = keys[first + 5], ready = keys[first + 6], aside = keys[first + 7],
        group = group, delivered = tonumber(position[3])}
    end
  end
  return readers
end

-- What retention of other kinds has to look at again.
local function aside_look_again(state, first)
  if state.max_messages_per_key then state.indexed = 0 end
  state.passed, state.turn = math.min(state.passed, first - 1), 0
end

-- What was removed for a while only. Its entries stay, below the floor or gone from between others, from state.kept on.
-- "removals" is a hash: "last", the newest number; of removal n the fields "n:facts" (the caller's JSON), "n:until" (steady
-- ms), "n:first", "n:upto" (the floor after it; 0 where single messages went), "n:stop" (one after the last message of a range;
-- without it n:upto), "n:cum" (bytes before first), "n:messages", "n:bytes", "n:groups" (JSON: name, generation, position and filter of each group then, and its positions at later parts);
-- "came:n", how many single messages an undo that is not done has brought back; and "back:n", what an undo has yet to give back
-- to groups. Single offsets stand in "aside", by number. Needs state, gone, floor, taken, group and removal; what groups get back: see
-- aside_groups.lua.

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

-- Behind the last message of a range. Beyond it, up to the floor, lies what had gone otherwise.
local function aside_stop(record) return record.stop or record.upto end

-- Whether what lies from an offset on may still come back.
local function aside_stays(state, first) return state.kept > 0 and first >= state.kept end

-- From where on a removal may still come back, nil where something else has ended it; such a one stays until aside_end comes by.
-- Of a range what nothing has reached can, and of single messages these too, but they are looked at one by one.
local function aside_from(gone, state, record)
  if aside_stays(state, record.first) then return record.first end
  if state.kept == 0 or aside_stop(record) <= state.kept then return nil end
  local from = gone_next(gone, state.kept)
  return from < aside_stop(record) and from or nil
end

-- Leaves of a range what nothing has reached; the rest is gone for good.
local function aside_shorten(log, state, record, from)
  if from == record.first then return end
  record.first, record.cum = from, bytes_before(log, state, from)
end

-- A single message that may still come back: it is there, and neither its own time nor the stream's is over.
local function aside_entry(stream, state, offset)
  local entry = aside_stays(state, offset) and redis.call('XRANGE', stream.log, offset, offset)[1]
  local fields = entry and entry[2]
  if not entry or (fields[#fields - 1] == 'x' and tonumber(fields[#fields]) <= steady_ms()) then return nil end
  if state.ttl and entry_ms(entry) <= age_cutoff(state.ttl * 1000) then return nil end
  return entry
end

-- Whether the limits of count and bytes have room for so much more: nothing else goes for what comes back.
local function aside_fits(state, messages, bytes)
  return not (state.max_messages and state.messages + messages > state.max_messages)
    and not (state.max_bytes and state.bytes + bytes > state.max_bytes)
end

-- Notes from where on something may still come back, and that ranges which cannot are taken, before aside_end comes by. Of
-- single messages that something has reached others may be left, until then.
local function aside_settle(meta, gone, held, state)
  local lowest
  for _, each in pairs(held) do
    local from = aside_from(gone, state, each)
    if not from and each.upto > 0 then taken_add(meta, state, each.first, aside_stop(each))
    elseif not from and state.kept > 0 then from = state.kept end
    if from then lowest = math.min(lowest or from, from) end
  end
  state.kept = lowest or 0
end

-- The lowest offset above another that was set aside, nil where none was.
local function aside_above(aside, removals, offset)
  local lowest
  local function take(found) lowest = math.min(lowest or found, found) end
  for number, each in pairs(aside_load(removals)) do
    if each.upto > 0 and aside_stop(each) > offset + 1 then
      take(math.max(each.first, offset + 1))
    elseif each.upto == 0 then
      -- Single ones of a removal stand in order.
      local low = redis.call('ZCOUNT', aside, '-inf', '(' .. number)
      local stop = low + redis.call('ZCOUNT', aside, number, number)
      local high = stop
      while low < high do
        local middle = math.floor((low + high) / 2)
        if tonumber(redis.call('ZRANGE', aside, middle, middle)[1]) > offset then high = middle else low = middle + 1 end
      end
      if low < stop then take(tonumber(redis.call('ZRANGE', aside, low, low)[1])) end
    end
  end
  return lowest
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
    positions[n] = {name, string.format('%.0f', group.generation), string.format('%.0f', group.delivered), group.filter}
    if group.ordered > 0 then standing[#standing + 1] = {parked = keys[first + 1], parked_aside = keys[first + 2]} end
  end
  return standing, #positions > 0 and cjson.encode(positions) or '[]'
end

-- A removal takes single messages in parts, in the order of their offsets, and groups go on between them. Where a group came to a
-- part, or past it, since what is noted of it, the record gets it as {the part's first offset, the group's position}.
local function aside_note_moved(removals, number, positions, first, last)
  local now, noted, moved = {}, cjson.decode(redis.call('HGET', removals, number .. ':groups')), false
  for _, each in ipairs(cjson.decode(positions)) do now[each[1]] = each end
  for _, each in ipairs(noted) do
    local group, marks = now[each[1]], each[5] or {}
    if group and group[2] == each[2] then
      local before, delivered = tonumber(marks[1] and marks[#marks][2] or each[3]), tonumber(group[3])
      local is_same = before == delivered or math.min(before, delivered) >= last or math.max(before, delivered) < first
      if not is_same then
        marks[#marks + 1] = {string.format('%.0f', first), group[3]}
        each[5], moved = marks, true
      end
    end
  end
  if moved then redis.call('HSET', removals, number .. ':groups', cjson.encode(noted)) end
end

-- Remembers what of a range a group has parked, beside what was parked there when an earlier removal took it.
local function aside_keep_parked(group, first, stop, scratch)
  redis.call('ZRANGESTORE', scratch, group.parked, first, stop, 'BYSCORE')
  redis.call('ZUNIONSTORE', group.parked_aside, 2, group.parked_aside, scratch, 'AGGREGATE', 'MAX')
  redis.call('DEL', scratch)
end

-- Begins a removal; none ends before an older one. Where there are too many the oldest that has not ended ends. Returns its
-- number, and the one that ended for it before its time or 0.
local function aside_begin(removals, gone, state, keep_ms, facts, positions)
  local now, held, oldest, count, ended = steady_ms(), aside_load(removals), nil, 0, 0
  local ends = now + keep_ms
  for number, each in pairs(held) do
    if each['until'] > now then
      ends, count = math.max(ends, each['until']), count + 1
      if not oldest or number < oldest then oldest = number end
    end
  end
  if count >= ASIDE_MOST then
    if aside_from(gone, state, held[oldest]) then ended = oldest end
    redis.call('HSET', removals, oldest .. ':until', 0)
  end
  local number = redis.call('HINCRBY', removals, 'last', 1)
  redis.call('HSET', removals, number .. ':facts', facts, number .. ':groups', positions, number .. ':until',
    string.format('%.0f', ends), number .. ':first', string.format('%.0f', state.last + 1), number .. ':upto', 0,
    number .. ':cum', 0, number .. ':messages', 0, number .. ':bytes', 0)
  return number, ended
end

-- From the beginning of an undo on single messages are no longer added to a removal.
local function aside_close(removals, number) redis.call('HSETNX', removals, 'came:' .. number, 0) end

local function aside_is_closed(removals, number) return redis.call('HEXISTS', removals, 'came:' .. number) == 1 end

-- How many single messages undos have brought back so far.
local function aside_came(removals, number) return tonumber(redis.call('HGET', removals, 'came:' .. number) or 0) end

local function aside_forget(removals, number)
  for _, field in ipairs({'facts', 'groups', 'until', 'first', 'upto', 'stop', 'cum', 'messages', 'bytes'}) do
    redis.call('HDEL', removals, number .. ':' .. field)
  end
  redis.call('HDEL', removals, 'came:' .. number)
end

-- One message more is visible again, and the lowest one is the floor.
local function aside_bring_back(stream, state, sums, entry)
  local offset, size = entry_offset(entry), #entry[2][4]
  gone_return(stream.gone, sums, offset, size)
  state.messages, state.bytes, state.returns = state.messages + 1, state.bytes + size, state.returns + 1
  if offset < state.floor then state.floor, state.floor_cum = offset, tonumber(entry[2][6]) - size end
end

-- The removal, if it can be undone now; else nil and the number of the one that has to be undone before it, or 0.
local function aside_open(gone, held, state, number)
  local record = held[number]
  if not record or record['until'] <= steady_ms() then return nil, 0 end
  for later, each in pairs(held) do
    if later > number and each.upto > record.first and aside_from(gone, state, each) then return nil, later end
  end
  return record
end

-- What others have to look at again: retention of other kinds, and groups what of it they have out.
local function aside_look_again(state, first)
  if state.max_messages_per_key then state.indexed = 0 end
  state.passed, state.turn, state.removals = math.min(state.passed, first - 1), 0, state.removals + 1
end

-- What people took away below the floor and the history has not got: it goes physically at once, and the history passes it
-- over. What lies between was taken by limits, and waits for the history; so do the hidden ones among it, which limits had
-- taken before. The meta field "taken" holds the ranges, packed as {first, stop, first, stop, …}: in order, none touching the
-- next, the stops not included. Needs state.

local TAKEN_KNOWN = 8

-- Ranges, and one more among them, as one list. Those that touch become one.
local function taken_with(ranges, first, stop)
  local merged, at = {}, nil
  for n = 1, #ranges, 2 do
    if ranges[n] <= stop and first <= ranges[n + 1] then
      first, stop = math.min(first, ranges[n]), math.max(stop, ranges[n + 1])
    else
      if not at and ranges[n] > stop then at = #merged end
      merged[#merged + 1], merged[#merged + 2] = ranges[n], ranges[n + 1]
    end
  end
  at = at or #merged
  table.insert(merged, at + 1, first)
  table.insert(merged, at + 2, stop)
  return merged
end

local function taken_load(meta, state)
  local packed = redis.call('HGET', meta, 'taken')
  local ranges = packed and cmsgpack.unpack(packed) or {}
  -- A version before knew one range, that began at owed, or where the history ended.
  if state.purged > state.archived then
    ranges = taken_with(ranges, state.owed > state.archived + 1 and state.owed or state.archived + 1, state.purged + 1)
  end
  return ranges
end

local function taken_save(meta, ranges)
  if #ranges > 0 then redis.call('HSET', meta, 'taken', cmsgpack.pack(ranges)) else redis.call('HDEL', meta, 'taken') end
end

-- Notes that a person took what lies from an offset on, below another.
local function taken_add(meta, state, first, stop)
  if stop > first and stop - 1 > state.archived then
    taken_save(meta, taken_with(taken_load(meta, state), first, stop))
  end
end

-- The first offset that the history has to see before it goes physically: what lies below is in it, or taken.
local function taken_free(stream, state, ranges)
  local free = state.archived + 1
  for n = 1, #ranges, 2 do
    if ranges[n] <= free then free = math.max(free, ranges[n + 1]) end
  end
  local hidden = free > state.archived + 1 and state.hidden == 1
    and redis.call('ZRANGEBYSCORE', stream.hidden, string.format('(%.0f', state.archived), '+inf', 'LIMIT', 0, 1)[1]
  return hidden and math.min(free, tonumber(hidden)) or free
end

-- The ranges that have not gone physically; and of those that have, and lie above what the history has, the newest: it
-- passes over them at once.
local function taken_left(state, ranges, below)
  local left, known = {}, #ranges + 1 - 2 * TAKEN_KNOWN
  for n = 1, #ranges, 2 do
    if ranges[n + 1] > below or (n >= known and ranges[n + 1] - 1 > state.archived) then
      left[#left + 1], left[#left + 2] = ranges[n], ranges[n + 1]
    end
  end
  return left
end

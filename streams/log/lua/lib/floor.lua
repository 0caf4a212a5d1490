-- Raising the floor: what lies below it is at once invisible and uncounted, whatever its number. Offsets are
-- contiguous and every entry knows the bytes before it, so what goes is arithmetic, not a walk.

-- At most so many single deletions are settled in one call; a caller goes on where it stopped.
local FLOOR_GONE_SLICE = 2000

local function entry_offset(entry) return tonumber(string.match(entry[1], '^(%d+)')) end

local function entry_ms(entry) return tonumber(string.match(entry[1], '%-(%d+)$')) end

-- Number and bytes of single deletions with first <= offset <= last.
local function gone_between(gone, first, last)
  local count, bytes = 0, 0
  if last >= first then
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', gone, first, last)) do
      count = count + 1
      bytes = bytes + tonumber(string.match(member, ':(%d+)$'))
    end
  end
  return count, bytes
end

-- Bytes of everything ever appended below an offset that is >= the floor.
local function bytes_before(log, gone, state, offset)
  local below = redis.call('XREVRANGE', log, offset - 1, state.floor, 'COUNT', 1)[1]
  if not below then
    local _, bytes = gone_between(gone, state.floor, offset - 1)
    return state.floor_cum + bytes
  end
  local _, bytes = gone_between(gone, entry_offset(below) + 1, offset - 1)
  return tonumber(below[2][6]) + bytes
end

-- The lowest visible offset whose time is at or after ms; last + 1 when none is.
local function offset_at(log, state, ms)
  local low, high = state.floor, state.last + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    local entry = redis.call('XRANGE', log, middle, '+', 'COUNT', 1)[1]
    if entry and entry_ms(entry) < ms then low = entry_offset(entry) + 1 else high = middle end
  end
  return low
end

-- Raises the floor to an offset; returns messages and bytes that went, and whether it got there in this call.
local function raise_floor(log, gone, state, offset)
  offset = math.min(offset, state.last + 1)
  if offset <= state.floor then return 0, 0, true end
  local wanted = offset
  local over = redis.call('ZRANGEBYSCORE', gone, state.floor, offset - 1, 'WITHSCORES', 'LIMIT', FLOOR_GONE_SLICE, 1)
  if over[2] then offset = tonumber(over[2]) end
  local cum = bytes_before(log, gone, state, offset)
  local gone_count, gone_bytes = gone_between(gone, state.floor, offset - 1)
  local messages = offset - state.floor - gone_count
  local bytes = cum - state.floor_cum - gone_bytes
  if gone_count > 0 then redis.call('ZREMRANGEBYSCORE', gone, '-inf', offset - 1) end
  state.floor, state.floor_cum = offset, cum
  state.messages, state.bytes = state.messages - messages, state.bytes - bytes
  return messages, bytes, offset == wanted
end

-- The floor that leaves the newest so many visible messages.
local function floor_keeping(gone, state, count)
  local low, high = state.floor, state.last + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    local left = state.last - middle + 1 - redis.call('ZCOUNT', gone, middle, '+inf')
    if left > count then low = middle + 1 else high = middle end
  end
  return low
end

-- The lowest floor that leaves at most so many visible bytes.
local function floor_within(log, gone, state, bytes)
  local low, high = state.floor, state.last + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    local _, gone_bytes = gone_between(gone, middle, state.last)
    if state.cum - bytes_before(log, gone, state, middle) - gone_bytes > bytes then low = middle + 1 else high = middle end
  end
  return low
end

-- The floor that the stream's own limits ask for now.
local function floor_by_limits(log, gone, state, now)
  local floor = state.floor
  if state.ttl and state.messages > 0 then
    local first = redis.call('XRANGE', log, floor, '+', 'COUNT', 1)[1]
    local cutoff = now - state.ttl * 1000
    if first and entry_ms(first) <= cutoff then floor = math.max(floor, offset_at(log, state, cutoff + 1)) end
  end
  if state.max_messages and state.messages > state.max_messages then
    floor = math.max(floor, floor_keeping(gone, state, state.max_messages))
  end
  if state.max_bytes and state.bytes > state.max_bytes then
    floor = math.max(floor, floor_within(log, gone, state, state.max_bytes))
  end
  return floor
end

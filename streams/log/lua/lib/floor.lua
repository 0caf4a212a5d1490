-- Raising the floor: what lies below it is at once invisible and uncounted, whatever its number. Offsets are
-- contiguous and every entry knows the bytes before it, so what goes is arithmetic, not a walk. The floor itself is
-- always visible, or one after the last. Needs the includes clock, state and gone.

local function entry_offset(entry) return tonumber(string.match(entry[1], '^(%d+)')) end

local function entry_ms(entry) return tonumber(string.match(entry[1], '%-(%d+)$')) end

-- Whether a reader may see a stored entry: its own time is not over, and it is not one that a limit took away and that
-- only the history still waits for.
local function entry_visible(gone, state, entry)
  local fields = entry[2]
  if fields[#fields - 1] == 'x' and tonumber(fields[#fields]) <= steady_ms() then return false end
  return state.hidden ~= 1 or not gone_has(gone, entry_offset(entry))
end

-- The same of many entries in one call: what went is looked up once a block.
local function entry_looker(gone, state)
  local went = state.hidden == 1 and gone_looker(gone)
  return function(entry, offset)
    local fields = entry[2]
    if fields[#fields - 1] == 'x' and tonumber(fields[#fields]) <= steady_ms() then return false end
    return not (went and went(offset))
  end
end

-- Bytes of everything ever appended below an offset that is visible or one after the last.
local function bytes_before(log, state, offset)
  if offset > state.last then return state.cum end
  local fields = redis.call('XRANGE', log, offset, offset)[1][2]
  return tonumber(fields[6]) - #fields[4]
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

-- Messages and bytes that go when the floor rises to an offset that is visible or one after the last.
local function floor_cost(log, gone, state, offset)
  local cum = bytes_before(log, state, offset)
  local count, bytes = gone_between(gone, state.floor, offset - 1)
  return offset - state.floor - count, cum - state.floor_cum - bytes, cum
end

-- Raises the floor to an offset, or to the next visible one; returns messages and bytes that went. It writes nothing:
-- who saves the state makes it so, who does not has only looked.
local function raise_floor(log, gone, state, offset)
  if offset <= state.floor then return 0, 0 end
  local asked = math.min(offset, state.last + 1)
  offset = gone_next(gone, asked)
  local messages, bytes, cum = floor_cost(log, gone, state, offset)
  state.floor, state.floor_cum = offset, cum
  state.messages, state.bytes = state.messages - messages, state.bytes - bytes
  -- What was set aside below what goes now is older: it cannot come back. What lies between that and the new floor can.
  if messages > 0 and state.kept > 0 then state.kept = math.max(state.kept, asked) end
  return messages, bytes
end

-- With what goes by hand for good all that is set aside below goes, too; not where no more were there than are to be kept.
local function floor_end_aside(state, mode, value, held, target)
  local reaches = mode == 'below' or value == 0 or held > value
  if reaches and state.kept > 0 then state.kept = math.max(state.kept, math.min(target, state.floor)) end
end

-- Below it nothing comes back.
local function floor_or_kept(state) return state.kept > 0 and math.min(state.kept, state.floor) or state.floor end

-- The lowest floor that is enough, the present one not being so. What a limit takes away mostly lies close to the
-- floor, so the steps double before they halve.
local function floor_search(state, enough)
  local low, step = state.floor, 1
  while low + step <= state.last and not enough(low + step) do low, step = low + step, step * 2 end
  local high = math.min(low + step, state.last + 1)
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if enough(middle) then high = middle else low = middle end
  end
  return high
end

-- The floor that leaves the newest so many visible messages.
local function floor_keeping(gone, state, count)
  local excess = state.messages - count
  if excess <= 0 then return state.floor end
  if count == 0 then return state.last + 1 end
  return floor_search(state, function(offset)
    return offset - state.floor - gone_between(gone, state.floor, offset - 1) >= excess
  end)
end

-- The lowest floor that leaves at most so many visible bytes.
local function floor_within(log, gone, state, limit)
  return floor_search(state, function(offset)
    local _, bytes = floor_cost(log, gone, state, gone_next(gone, offset))
    return state.bytes - bytes <= limit
  end)
end

-- Whether there is more than count or size allow.
local function floor_is_passed(state)
  return (state.max_messages and state.messages > state.max_messages)
    or (state.max_bytes and state.bytes > state.max_bytes)
end

-- The floor that the stream's own limits ask for now.
local function floor_by_limits(log, gone, state)
  local floor = state.floor
  if state.ttl and state.messages > 0 then
    local first = redis.call('XRANGE', log, floor, '+', 'COUNT', 1)[1]
    local cutoff = age_cutoff(state.ttl * 1000)
    if first and entry_ms(first) <= cutoff then floor = math.max(floor, offset_at(log, state, cutoff + 1)) end
  end
  if state.crowded == 1 then return floor end
  if state.max_messages and state.messages > state.max_messages then
    floor = math.max(floor, floor_keeping(gone, state, state.max_messages))
  end
  if state.max_bytes and state.bytes > state.max_bytes then
    floor = math.max(floor, floor_within(log, gone, state, state.max_bytes))
  end
  return floor
end

-- Takes away what the limits ask for now, and notes it.
local function floor_settle(log, gone, meta, state)
  if not (state.ttl or state.max_messages or state.max_bytes) then return end
  local before = state.floor
  raise_floor(log, gone, state, floor_by_limits(log, gone, state))
  if state.floor ~= before then state_save(meta, state) end
end

-- Notes what the limits have taken away before others hold: it does not come back.
local function floor_settle_before(log, gone, meta)
  local state = state_load(meta)
  if state then floor_settle(log, gone, meta, state) end
  return state
end

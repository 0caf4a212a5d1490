-- A stream's counters and settings, as one table of numbers (text fields as strings, unset ones nil).

local STATE_NUMBERS = {'last', 'last_ms', 'cum', 'messages', 'bytes', 'floor', 'floor_cum', 'committed', 'purged',
  'archived', 'duplicates', 'widest', 'ids_now', 'ids_since', 'dedup_window', 'max_message_bytes', 'sealed', 'deny_delete', 'deny_purge',
  'max_messages', 'max_bytes', 'ttl', 'archive', 'held_since'}
local STATE_COUNTERS = {'last', 'last_ms', 'cum', 'messages', 'bytes', 'floor', 'floor_cum', 'committed', 'purged',
  'duplicates', 'widest', 'ids_now', 'ids_since'}

-- Returns nil when there is no such stream.
local function state_load(meta)
  local values = redis.call('HMGET', meta, 'name', 'last_id', 'discard', unpack(STATE_NUMBERS))
  if not values[1] then return nil end
  local state, before = { name = values[1], last_id = values[2] or nil, discard = values[3] or nil }, {}
  for n = 1, #STATE_NUMBERS do
    local value = values[n + 3]
    if value and value ~= '' then state[STATE_NUMBERS[n]] = tonumber(value) end
  end
  for _, field in ipairs(STATE_COUNTERS) do
    before[field] = state[field]
    state[field] = state[field] or (field == 'floor' and 1 or 0)
  end
  state.archived = state.archived or 0
  state.before = before
  return state
end

-- Writes the counters that changed, and the field and value pairs that are given besides.
local function state_save(meta, state, ...)
  local changed, count, before = {...}, select('#', ...), state.before
  for n = 1, #STATE_COUNTERS do
    local field = STATE_COUNTERS[n]
    local value = state[field]
    if value ~= before[field] then
      changed[count + 1], changed[count + 2] = field, string.format('%d', value)
      count = count + 2
    end
  end
  if count > 0 then redis.call('HSET', meta, unpack(changed)) end
end

-- The server's time in unix ms, never running backwards within a stream.
local function state_now(state)
  local time = redis.call('TIME')
  return math.max(state.last_ms, time[1] * 1000 + math.floor(time[2] / 1000))
end

-- A stream's counters and settings, as one table of numbers (text fields as strings, unset ones nil).

local STATE_NUMBERS = {'last', 'last_ms', 'cum', 'messages', 'bytes', 'floor', 'floor_cum', 'committed', 'purged',
  'archived', 'duplicates', 'widest', 'ids_now', 'ids_since', 'dedup_window', 'max_message_bytes', 'sealed', 'deny_delete', 'deny_purge',
  'max_messages', 'max_bytes', 'ttl', 'archive', 'held_since'}
local STATE_TEXTS = {'name', 'last_id', 'discard'}
local STATE_COUNTERS = {'last', 'last_ms', 'cum', 'messages', 'bytes', 'floor', 'floor_cum', 'committed', 'purged',
  'duplicates', 'widest', 'ids_now', 'ids_since'}

-- Returns nil when there is no such stream.
local function state_load(meta)
  local numbers = redis.call('HMGET', meta, unpack(STATE_NUMBERS))
  local texts = redis.call('HMGET', meta, unpack(STATE_TEXTS))
  if not texts[1] then return nil end
  local state, before = {}, {}
  for n, field in ipairs(STATE_NUMBERS) do state[field] = tonumber(numbers[n] or nil) end
  for n, field in ipairs(STATE_TEXTS) do state[field] = texts[n] or nil end
  for _, field in ipairs(STATE_COUNTERS) do
    before[field] = state[field]
    state[field] = state[field] or (field == 'floor' and 1 or 0)
  end
  state.archived = state.archived or 0
  state.before = before
  return state
end

-- Writes the counters that changed.
local function state_save(meta, state)
  local changed = {}
  for _, field in ipairs(STATE_COUNTERS) do
    if state[field] ~= state.before[field] then
      changed[#changed + 1] = field
      changed[#changed + 1] = string.format('%.0f', state[field])
    end
  end
  if #changed > 0 then redis.call('HSET', meta, unpack(changed)) end
end

-- The server's time in unix ms, never running backwards within a stream.
local function state_now(state)
  local time = redis.call('TIME')
  return math.max(state.last_ms, time[1] * 1000 + math.floor(time[2] / 1000))
end

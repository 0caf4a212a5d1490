-- A consumer group: its settings and position, and what it has in flight. Needs the includes state and floor.
-- In flight are three keys: pending (offsets by offset), due (offsets by the time of their redelivery) and leases
-- (offset -> "<deliveries>:<sequence>:<delivered ms>:<consumer>"). What went before it was delivered: see losses.lua.

local GROUP_NUMBERS = {'delivered', 'generation', 'sequence', 'redelivered', 'missed', 'seen', 'acked', 'paused_until',
  'fetched_ms', 'acked_ms', 'ack_wait_ms', 'max_deliver', 'max_ack_pending', 'ordered', 'unfinished', 'made_ms', 'swept',
  'dead_lettered', 'looked', 'looked_floor', 'look_from', 'look_removals', 'look_floor'}
local GROUP_COUNTERS = {'delivered', 'sequence', 'redelivered', 'missed', 'seen', 'acked', 'fetched_ms', 'acked_ms',
  'unfinished', 'dead_lettered', 'looked', 'looked_floor', 'look_from', 'look_removals', 'look_floor'}

-- Returns nil when there is no such group.
local function group_load(key)
  local numbers = redis.call('HMGET', key, unpack(GROUP_NUMBERS))
  local texts = redis.call('HMGET', key, 'name', 'ack', 'backoff', 'filter')
  if not texts[1] then return nil end
  local group = {ack = texts[2], backoff = {}, filter = {}, before = {}}
  for n, field in ipairs(GROUP_NUMBERS) do group[field] = tonumber(numbers[n] or nil) or 0 end
  for _, field in ipairs(GROUP_COUNTERS) do group.before[field] = group[field] end
  for wait in string.gmatch(texts[3] or '', '%d+') do group.backoff[#group.backoff + 1] = tonumber(wait) end
  for pattern in string.gmatch(texts[4] or '', '[^\n]+') do group.filter[#group.filter + 1] = pattern end
  return group
end

local function group_save(key, group)
  local changed = {}
  for _, field in ipairs(GROUP_COUNTERS) do
    if group[field] ~= group.before[field] then
      changed[#changed + 1] = field
      changed[#changed + 1] = string.format('%.0f', group[field])
    end
  end
  if #changed > 0 then redis.call('HSET', key, unpack(changed)) end
end

-- Whether an entry is for this group. Filters come as Lua patterns, anchored at both ends.
local function group_wants(group, entry)
  if #group.filter == 0 then return true end
  if entry[2][7] ~= 'k' then return false end
  for _, pattern in ipairs(group.filter) do
    if string.find(entry[2][8], pattern) then return true end
  end
  return false
end

-- How long delivery number n may take; the last backoff repeats.
local function group_wait_ms(group, n)
  return group.backoff[math.min(n, #group.backoff)] or group.ack_wait_ms
end

-- Whether members may take nothing new for what is in flight already.
local function group_is_full(group, pending)
  return redis.call('ZCARD', pending) >= group.max_ack_pending
end

local function lease_read(leases, offset)
  local held = redis.call('HGET', leases, offset)
  if not held then return nil end
  local deliveries, sequence, at_ms, consumer = string.match(held, '^(%d+):(%d+):(%d+):(.*)$')
  return {deliveries = tonumber(deliveries), sequence = sequence, at_ms = at_ms, consumer = consumer}
end

local function group_forget(pending, due, leases, offset)
  redis.call('ZREM', pending, offset)
  redis.call('ZREM', due, offset)
  redis.call('HDEL', leases, offset)
end

-- Puts a message among the dead letters, with its body, since the stream may lose it. One that died before a seek
-- brought it back makes room for the new one.
local function group_bury(dead, entry, reason, deliveries, now)
  local fields = {}
  redis.call('ZREMRANGEBYSCORE', dead, entry_offset(entry), entry_offset(entry))
  for n = 1, #entry[2], 2 do fields[entry[2][n]] = entry[2][n + 1] end
  redis.call('ZADD', dead, entry_offset(entry), cmsgpack.pack({offset = entry_offset(entry), timestamp_ms = entry_ms(entry),
    id = fields.i, body = fields.b, key = fields.k, headers = fields.h, reason = reason, deliveries = deliveries,
    died_ms = now}))
end

-- The entry at an offset: from the stream where it is visible, else from what a replayed dead letter brought back.
local function group_entry(log, gone, replayed, state, now, offset)
  local entry = redis.call('XRANGE', log, offset, offset)[1]
  if entry and tonumber(offset) >= state.floor and entry_visible(gone, state, now, entry) then return entry end
  local kept = redis.call('HGET', replayed, offset)
  if not kept then return nil end
  local letter = cmsgpack.unpack(kept)
  local fields = {'i', letter.id, 'b', letter.body, 'c', '0'}
  if letter.key then fields[#fields + 1], fields[#fields + 2] = 'k', letter.key end
  if letter.headers then fields[#fields + 1], fields[#fields + 2] = 'h', letter.headers end
  return {string.format('%.0f-%.0f', letter.offset, letter.timestamp_ms), fields}
end

-- A consumer group: its settings and position, and what it has in flight. Needs the includes clock, state, floor
-- and members.
-- The group's hash holds two fields (MessagePack): settings as a map, as streams.log.group_meta packs them, and counters as
-- an array, whose order it knows too.
-- In flight are three keys: pending (offsets by offset), due (offsets by the time of their redelivery) and leases
-- (offset -> "<deliveries>:<sequence>:<delivered ms>:<consumer>"), beside what was taken as a whole (see runs.lua).
-- What went before it was delivered: see losses.lua.

-- How messages of a key go out, as group.ordered says. on: in turns (see order.lua). lining_up and letting_go: on the way
-- there and back, which order_change goes on with a slice at a time; whoever fetches does so first. loose: without turns, and
-- something waits that the group has passed already.
local TURNS = {off = 0, on = 1, letting_go = 2, lining_up = 3, loose = 4}

-- Whether what comes back now gets a place in the list of its key.
local function group_in_turns(group) return group.ordered == TURNS.on or group.ordered == TURNS.lining_up end

-- Returns nil when there is no such group. members: the key of who has what; who changes that gives it.
local function group_load(key, members)
  local packed = redis.call('HMGET', key, 'settings', 'counters')
  if not packed[1] then return nil end
  local held = cmsgpack.unpack(packed[2])
  return setmetatable({delivered = held[1], generation = held[2], ordered = held[3], made_ms = held[4], sequence = held[5],
    redelivered = held[6], missed = held[7], seen = held[8], acked = held[9], paused_until = held[10],
    fetched_ms = held[11], acked_ms = held[12], unfinished = held[13], swept = held[14], dead_lettered = held[15],
    looked = held[16], looked_floor = held[17], look_from = held[18], look_removals = held[19], look_floor = held[20],
    retired_ms = held[21], runs = held[22], in_runs = held[23], tallied = held[24], returning = held[25] or 0, packed = packed[2],
    members = members}, settings_read(packed[1]))
end

-- Writes the counters if they changed, and who has what.
local function group_save(key, group)
  local packed = cmsgpack.pack({group.delivered, group.generation, group.ordered, group.made_ms, group.sequence,
    group.redelivered, group.missed, group.seen, group.acked, group.paused_until, group.fetched_ms, group.acked_ms,
    group.unfinished, group.swept, group.dead_lettered, group.looked, group.looked_floor, group.look_from,
    group.look_removals, group.look_floor, group.retired_ms, group.runs, group.in_runs, group.tallied, group.returning})
  if packed ~= group.packed then redis.call('HSET', key, 'counters', packed) end
  group.packed = packed
  if group.told and group.tallied then members_write(group.members, group.told, group.answered_ms, group.acks) end
  group.told = nil
end

-- Makes a group that starts after an offset; the time is its generation, so that leases of one that had this name before
-- are unknown to it.
local function group_make(key, settings, delivered, ordered, now, made_ms)
  redis.call('HSET', key, 'settings', settings)
  group_save(key, {delivered = delivered, generation = now, ordered = ordered, made_ms = made_ms, sequence = 0,
    redelivered = 0, missed = 0, seen = 0, acked = 0, paused_until = 0, fetched_ms = 0, acked_ms = 0, unfinished = 0,
    swept = 0, dead_lettered = 0, looked = 0, looked_floor = 0, look_from = 0, look_removals = 0, look_floor = 0,
    retired_ms = -1, runs = 0, in_runs = 0, tallied = 1, returning = 0})
end

-- Whether a filter lets an entry through. Filters come as Lua patterns, anchored at both ends.
local function filter_lets(filter, entry)
  if #filter == 0 then return true end
  if entry[2][7] ~= 'k' then return false end
  for _, pattern in ipairs(filter) do
    if string.find(entry[2][8], pattern) then return true end
  end
  return false
end

-- Whether an entry is for this group.
local function group_wants(group, entry) return filter_lets(group.filter, entry) end

-- How long delivery number n may take; the last backoff repeats.
local function group_wait_ms(group, n)
  return group.backoff[math.min(n, #group.backoff)] or group.ack_wait_ms
end

-- Until when a group delivers nothing: -1 without an end, 0 where it delivers. That is a moment of the wall clock, which the
-- stream's own time is ahead of where that clock was.
local function group_paused_until(group)
  local is_over = group.paused_until >= 0 and group.paused_until <= server_ms()
  return is_over and 0 or group.paused_until
end

-- How many messages are in flight.
local function group_out(group, pending) return redis.call('ZCARD', pending) + group.in_runs end

-- How many of these take up room: not those that are due at no time, as they wait for the turn of their key, maybe behind some
-- that were never out and need the room.
local function group_taken(group, keys)
  local out = group_out(group, keys.pending)
  if group.ordered == TURNS.off then return out end
  return out - math.max(0, redis.call('ZCARD', keys.pending) + group.runs - redis.call('ZCARD', keys.due))
end

-- Whether members may take nothing new for what is in flight already.
local function group_is_full(group, keys) return group_taken(group, keys) >= group.max_ack_pending end

-- Writes what goes out, as pairs for each of the three keys. A few calls with many arguments cost a third of many calls
-- with few.
local function group_hold(keys, in_order, by_time, held_by)
  for first = 1, #in_order, 2000 do
    local last = math.min(first + 1999, #in_order)
    redis.call('ZADD', keys.pending, unpack(in_order, first, last))
    redis.call('ZADD', keys.due, unpack(by_time, first, last))
    redis.call('HSET', keys.leases, unpack(held_by, first, last))
  end
end

local function lease_read(leases, offset)
  local held = redis.call('HGET', leases, offset)
  if not held then return nil end
  local deliveries, sequence, at_ms, consumer = string.match(held, '^(%d+):(%d+):(%d+):(.*)$')
  return {deliveries = tonumber(deliveries), sequence = sequence, at_ms = at_ms, consumer = consumer}
end

-- Whether a delivery was the last one that a message gets.
local function group_is_spent(group, held)
  return group.max_deliver > 0 and held.deliveries >= group.max_deliver
end

-- Everything due up to retired_ms was looked at for spent deliveries; one that is due again earlier must be looked at.
local function group_look_again(group, due_ms)
  group.retired_ms = math.min(group.retired_ms, due_ms - 1)
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

-- A dead letter as an entry.
local function letter_entry(letter)
  local fields = {'i', letter.id, 'b', letter.body, 'c', '0'}
  if letter.key then fields[#fields + 1], fields[#fields + 2] = 'k', letter.key end
  if letter.headers then fields[#fields + 1], fields[#fields + 2] = 'h', letter.headers end
  return {string.format('%.0f-%.0f', letter.offset, letter.timestamp_ms), fields}
end

-- The entry at an offset: from the stream where it is visible, else from what a replayed dead letter, or the history,
-- brought along.
local function group_entry(log, gone, replayed, state, offset)
  local entry = redis.call('XRANGE', log, offset, offset)[1]
  if entry and tonumber(offset) >= state.floor and entry_visible(gone, state, entry) then return entry end
  local kept = redis.call('HGET', replayed, offset)
  return kept and letter_entry(cmsgpack.unpack(kept)) or nil
end

-- What a spent message leaves as its dead letter, also where the stream has lost it and its entry is not gone yet; unless
-- it had its age before it was due, for so many ms: then it was out no more.
local function group_remains(log, gone, replayed, state, offset, due_for_ms)
  local visible = group_entry(log, gone, replayed, state, offset)
  local entry = visible or redis.call('XRANGE', log, offset, offset)[1]
  if visible or not entry then return entry end
  local fields = entry[2]
  local over_for_ms = state.ttl and age_cutoff(state.ttl * 1000) - entry_ms(entry) or -math.huge
  if fields[#fields - 1] == 'x' then over_for_ms = math.max(over_for_ms, steady_ms() - tonumber(fields[#fields])) end
  return over_for_ms <= due_for_ms and entry or nil
end

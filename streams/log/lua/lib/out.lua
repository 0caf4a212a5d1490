-- What a group has out, and what of it went from the stream meanwhile: that is out no more, and an answer to it does
-- nothing. Needs the includes state, gone, floor, members, group, runs and order. The keys come as one table: log, gone, expiry, pending, due,
-- leases, replayed, turns, ready, runs and shelved.

local OUT_SLICE = 1000

-- Which of these offsets went: a set. A replayed dead letter brought its body along and does not go.
local function out_went(keys, state, offsets)
  local is_gone, went, expires = gone_looker(keys.gone), {}, redis.call('EXISTS', keys.expiry) == 1
  for first = 1, #offsets, 1000 do
    local last, named, found = math.min(first + 999, #offsets), {}, {}
    local times = expires and redis.call('ZMSCORE', keys.expiry, unpack(offsets, first, last)) or {}
    for n = first, last do
      local offset, ends = tonumber(offsets[n]), tonumber(times[n - first + 1] or nil)
      if offset < state.floor or is_gone(offset) or (ends and ends <= steady_ms()) then found[#found + 1] = offsets[n] end
    end
    named = #found > 0 and redis.call('HMGET', keys.replayed, unpack(found)) or {}
    for n, offset in ipairs(found) do if not named[n] then went[offset] = true end end
  end
  return went
end

-- Takes these offsets out of flight; returns how many keys' turns came with it. are_acked: since they were acknowledged.
local function out_forget(keys, group, offsets, are_acked)
  local came, has_shelved = 0, #offsets > 0 and redis.call('EXISTS', keys.shelved) == 1
  for first = 1, #offsets, 1000 do
    local slice = {unpack(offsets, first, math.min(first + 999, #offsets))}
    members_leave(keys, group, slice, are_acked)
    redis.call('ZREM', keys.pending, unpack(slice))
    redis.call('ZREM', keys.due, unpack(slice))
    redis.call('HDEL', keys.leases, unpack(slice))
    redis.call('HDEL', keys.replayed, unpack(slice))
    if has_shelved then redis.call('ZREM', keys.shelved, unpack(slice)) end
    if group.ordered > 0 then came = came + order_pass(keys.turns, keys.ready, slice) end
  end
  return came
end

-- Remembers which messages went for a while while they were out: their leases stay.
local function out_remember(keys, offsets)
  local flat = {}
  for n, offset in ipairs(offsets) do flat[2 * n - 1], flat[2 * n] = offset, offset end
  redis.call('ZADD', keys.shelved, unpack(flat))
end

-- Takes these offsets, which went, out of flight. One that is set aside may come back: its lease
-- stays, and the time at which it would have come again.
local function out_shelve(keys, state, group, offsets)
  local lost, shelved, came = {}, {}, 0
  for _, offset in ipairs(offsets) do
    local may_return = state.kept > 0 and tonumber(offset) >= state.kept
    if may_return then shelved[#shelved + 1] = offset else lost[#lost + 1] = offset end
  end
  for first = 1, #shelved, 1000 do
    local slice = {unpack(shelved, first, math.min(first + 999, #shelved))}
    members_leave(keys, group, slice)
    redis.call('ZREM', keys.pending, unpack(slice))
    out_remember(keys, slice)
    if group.ordered > 0 then came = came + order_pass(keys.turns, keys.ready, slice) end
  end
  return came + out_forget(keys, group, lost)
end

-- Without those that were delivered for the last time and not answered in time: these become dead letters (retire.lua).
local function out_unspent(keys, group, offsets, steady)
  if #offsets == 0 or group.max_deliver <= 0 then return offsets end
  local left, due = {}, redis.call('ZMSCORE', keys.due, unpack(offsets))
  for n, offset in ipairs(offsets) do
    local held = due[n] and tonumber(due[n]) <= steady and lease_read(keys.leases, offset)
    if not (held and group_is_spent(group, held) and redis.call('XRANGE', keys.log, offset, offset)[1]) then left[#left + 1] = offset end
  end
  return left
end

-- Forgets a slice of what is out and went, where something went since the last look; true when all has been looked at.
-- keys.left: how many left their place.
local function out_sweep(keys, state, group, steady)
  if group.looked == state.removals and group.looked_floor == state.floor then return true end
  if group.look_from == 0 then group.look_removals, group.look_floor = state.removals, state.floor end
  local stop = group.look_removals == group.looked and string.format('(%.0f', group.look_floor) or '+inf'
  local upto = runs_sweep(keys, state, group, group.look_from)
  if upto then stop = string.format('%.0f', upto) end
  local found = redis.call('ZRANGEBYSCORE', keys.pending, string.format('%.0f', group.look_from), stop, 'LIMIT', 0, OUT_SLICE)
  local went, gone = out_went(keys, state, found), {}
  for _, offset in ipairs(found) do if went[offset] then gone[#gone + 1] = offset end end
  gone = out_unspent(keys, group, gone, steady)
  out_shelve(keys, state, group, gone)
  group.unfinished, keys.left = group.unfinished + #gone, (keys.left or 0) + #gone
  if #found == OUT_SLICE then upto = tonumber(found[#found]) end
  if upto then
    group.look_from = upto + 1
    return false
  end
  group.look_from, group.looked, group.looked_floor = 0, group.look_removals, group.look_floor
  return group.looked == state.removals and group.looked_floor == state.floor
end

-- What a group has out, and what of it went from the stream meanwhile: that is out no more, and an answer to it does
-- nothing. Needs the includes state, gone, floor, members, group, runs and order. The keys come as one table: log, gone, expiry, pending, due,
-- leases, replayed, turns, ready, runs.

local OUT_SLICE = 1000

-- Which of these offsets went: a set. A replayed dead letter brought its body along and does not go.
local function out_went(keys, state, offsets)
  local is_gone, now, went, expires = gone_looker(keys.gone), state_now(state), {}, redis.call('EXISTS', keys.expiry) == 1
  for first = 1, #offsets, 1000 do
    local last, named, found = math.min(first + 999, #offsets), {}, {}
    local times = expires and redis.call('ZMSCORE', keys.expiry, unpack(offsets, first, last)) or {}
    for n = first, last do
      local offset, ends = tonumber(offsets[n]), tonumber(times[n - first + 1] or nil)
      if offset < state.floor or is_gone(offset) or (ends and ends <= now) then found[#found + 1] = offsets[n] end
    end
    named = #found > 0 and redis.call('HMGET', keys.replayed, unpack(found)) or {}
    for n, offset in ipairs(found) do if not named[n] then went[offset] = true end end
  end
  return went
end

-- Takes these offsets out of flight; returns how many keys' turns came with it.
local function out_forget(keys, group, offsets)
  local came = 0
  for first = 1, #offsets, 1000 do
    local slice = {unpack(offsets, first, math.min(first + 999, #offsets))}
    members_leave(keys, group, slice)
    redis.call('ZREM', keys.pending, unpack(slice))
    redis.call('ZREM', keys.due, unpack(slice))
    redis.call('HDEL', keys.leases, unpack(slice))
    redis.call('HDEL', keys.replayed, unpack(slice))
    if group.ordered > 0 then came = came + order_pass(keys.turns, keys.ready, slice) end
  end
  return came
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
  group.unfinished = group.unfinished + #gone
  if #found == OUT_SLICE then upto = tonumber(found[#found]) end
  if upto then
    group.look_from = upto + 1
    return false
  end
  group.look_from, group.looked, group.looked_floor = 0, group.look_removals, group.look_floor
  return group.looked == state.removals and group.looked_floor == state.floor
end

-- Whether a lease is of a delivery; what was replayed or given back and did not go out since has one without a sequence.
local function out_is_delivered(held) return not string.find(held, '^%d+:0:') end

-- Everything delivered from one offset up to another, of a slice of what is out; and where to go on, if anywhere.
local function out_upto(keys, upto, from)
  local last = string.format('%.0f', upto)
  local found = redis.call('ZRANGEBYSCORE', keys.pending, string.format('%.0f', from), last, 'LIMIT', 0, OUT_SLICE)
  local offsets, leases = {}, #found > 0 and redis.call('HMGET', keys.leases, unpack(found)) or {}
  for n, offset in ipairs(found) do
    if not leases[n] or out_is_delivered(leases[n]) then offsets[#offsets + 1] = offset end
  end
  return offsets, #found == OUT_SLICE and {upto, tonumber(found[#found]) + 1} or {}
end

-- is_final: whether what is answered never comes again, also when it is brought back. also_undelivered: whether what is
-- named counts although it did not go out since it was replayed or given back.
-- The deliveries that an answer is about: named by offset, by everything up to one (and where to begin), or by lease; all of
-- them out, and there. What of them went is forgotten. Returns nil and the lost lease when one of the leases has passed to
-- another delivery; else the offsets, how an answer of everything up to an offset goes on, how many keys' turns came, and
-- how many more were settled as runs.
local function out_answered(keys, state, group, mode, values, covers, is_final, also_undelivered)
  local named, wanted, highest = {}, {}, 0
  for n, value in ipairs(values) do
    named[n] = value
    if mode == 'leases' then
      local generation, offset, sequence = string.match(value, '^(%d+)%-(%d+)%-(%d+)$')
      named[n], wanted[n] = tonumber(generation) == group.generation and offset or '0', sequence
    end
  end
  local offsets, seen, more, from, settled = {}, {}, {}, 0, 0
  if mode == 'up_to' then
    covers, highest, from = true, tonumber(values[1]), tonumber(values[2] or 0)
  elseif covers and mode == 'offsets' then
    for _, value in ipairs(values) do highest = math.max(highest, tonumber(value)) end
  else
    local passed = {}
    runs_open_named(keys, group, named)
    for first = 1, #named, 1000 do
      for n, held in ipairs(redis.call('HMGET', keys.leases, unpack(named, first, math.min(first + 999, #named)))) do
        local offset, sequence = named[first + n - 1], wanted[first + n - 1]
        local is_delivered = held and out_is_delivered(held)
        if is_delivered and sequence and string.match(held, '^%d+:(%d+):') ~= sequence then passed[offset] = values[first + n - 1] end
        if held and not seen[offset] and (is_delivered or (also_undelivered and not sequence)) then
          seen[offset] = true
          offsets[#offsets + 1] = offset
          highest = math.max(highest, tonumber(offset))
        end
      end
    end
    if next(passed) then
      local went = out_went(keys, state, offsets)
      for offset, lease in pairs(passed) do if not went[offset] then return nil, lease end end
    end
  end
  if covers then
    local again
    settled, again = runs_settle(keys, state, group, 0, highest, 100)
    offsets, more = out_upto(keys, highest, from)
    if again then more = {highest, 0} end
  end
  local went, there, gone = out_went(keys, state, offsets), {}, {}
  for _, offset in ipairs(offsets) do
    if went[offset] then gone[#gone + 1] = offset else there[#there + 1] = offset end
  end
  group.unfinished = group.unfinished + #gone
  return there, more, is_final and out_forget(keys, group, gone) or out_shelve(keys, state, group, gone), settled
end

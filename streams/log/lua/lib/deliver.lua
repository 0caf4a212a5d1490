-- What one fetch hands out, and the three sources it comes from. Needs the includes state, gone, floor, members, group, runs, order, out.
-- A fetch is a table: the keys by name, state, group, now, steady, latest, limit, max_bytes, consumer; out and size grow.

local DELIVER_SCAN, DELIVER_LAST = 1000, 1000

-- So many that are due again are looked at in one call: each is looked up on its own.
local DELIVER_DUE = 100

-- From so many on a round trip of its own is cheaper than handing entries through a script.
local DELIVER_RANGE = 32

-- Bytes of its body and its headers.
local function deliver_bytes(entry)
  local fields, bytes = entry[2], #entry[2][4]
  for n = 7, #fields, 2 do
    if fields[n] == 'h' then bytes = bytes + #fields[n + 1] end
  end
  return bytes
end

local function deliver_fits(fetch, entry)
  return #fetch.out < fetch.limit and (fetch.size == 0 or fetch.size + deliver_bytes(entry) <= fetch.max_bytes)
end

-- How many messages may still become pending in this fetch.
local function deliver_room(fetch)
  local room = fetch.limit - #fetch.out
  if fetch.group.ack == 'none' then return room end
  return math.min(room, fetch.group.max_ack_pending - fetch.pending_count)
end

-- Leases one message to this fetch; what is to be written about it is collected.
local function deliver_one(fetch, entry, deliveries)
  local group, offset, out = fetch.group, string.match(entry[1], '^%d+'), fetch.out
  group.sequence = group.sequence + 1
  local sequence = string.format('%.0f', group.sequence)
  fetch.size = fetch.size + deliver_bytes(entry)
  fetch.lease = fetch.lease or string.format('%.0f-', group.generation)
  out[#out + 1] = {entry, deliveries, fetch.lease .. offset .. '-' .. sequence}
  if group.ack == 'none' then return end
  if deliveries > 1 and deliveries == group.max_deliver then
    fetch.at_last[#fetch.at_last + 1], fetch.at_last[#fetch.at_last + 2] = offset, offset
  end
  -- A number that is handed to a command as one costs several times its text.
  local due = fetch.due_again[deliveries]
  if not due then
    due = string.format('%.0f', fetch.latest + group_wait_ms(group, deliveries))
    fetch.due_again[deliveries] = due
    fetch.held_since = string.format(':%.0f:', fetch.now) .. fetch.consumer
  end
  local at, in_order, by_time, held_by = #fetch.in_order, fetch.in_order, fetch.by_time, fetch.held_by
  in_order[at + 1], in_order[at + 2] = offset, offset
  by_time[at + 1], by_time[at + 2] = due, offset
  held_by[at + 1], held_by[at + 2] = offset, string.format('%d:', deliveries) .. sequence .. fetch.held_since
end

-- One that is out is with its member of before no more.
local function deliver_taken(fetch, held, is_out)
  if is_out and held.sequence ~= '0' then members_tell(fetch.group, held.consumer, -1) end
end

-- Leases one that has a lease already: what was replayed or given back went out never before.
local function deliver_again(fetch, entry, held, is_out)
  deliver_taken(fetch, held, is_out)
  if held.deliveries > 0 then fetch.group.redelivered = fetch.group.redelivered + 1 end
  deliver_one(fetch, entry, held.deliveries + 1)
end

-- Makes a dead letter of one that was delivered for the last time and not answered in time.
local function deliver_bury(fetch, letter, held)
  group_bury(fetch.dead, letter, 'max_deliver', held.deliveries, fetch.now)
  fetch.group.dead_lettered = fetch.group.dead_lettered + 1
end

local function deliver_write(fetch)
  group_hold(fetch, fetch.in_order, fetch.by_time, fetch.held_by)
  if #fetch.in_order > 0 then members_tell(fetch.group, fetch.consumer, #fetch.in_order / 2, fetch.now) end
  for first = 1, #fetch.at_last, 2000 do
    redis.call('ZADD', fetch.last, unpack(fetch.at_last, first, math.min(first + 1999, #fetch.at_last)))
  end
  -- Who looks takes away what was answered; nobody needs to know of more than so many.
  if #fetch.at_last > 0 then redis.call('ZREMRANGEBYRANK', fetch.last, 0, -DELIVER_LAST - 1) end
end

-- What was out and is due again, a slice of it in one call; of what was due first, as many as are looked through, the lowest
-- offsets come first, up to one that does not fit. What was out too often or is no longer there is retired. Returns whether
-- more may be due, which comes before anything new, and whether nothing more fits.
local function deliver_due(fetch)
  local group, retired, given, shelved, all_fit = fetch.group, {}, {}, {}, true
  local found = redis.call('ZRANGEBYSCORE', fetch.due, '-inf', fetch.due_by, 'LIMIT', 0, DELIVER_SCAN)
  local ripe, has_more = runs_open_due(fetch, group, found, DELIVER_DUE)
  local in_turn = group.ordered == TURNS.on and group.ack ~= 'none'
  for _, offset in ipairs(ripe) do
    local held = lease_read(fetch.leases, offset)
    local entry = group_entry(fetch.log, fetch.gone, fetch.replayed, fetch.state, offset)
    local spent, is_out = held and group_is_spent(group, held), redis.call('ZSCORE', fetch.pending, offset)
    local letter = spent and is_out and (entry or group_remains(fetch.log, fetch.gone, fetch.replayed, fetch.state,
      offset, fetch.steady - redis.call('ZSCORE', fetch.due, offset)))
    if not entry or not held or spent then
      if held then deliver_taken(fetch, held, is_out) end
      if letter then
        deliver_bury(fetch, letter, held)
      elseif is_out then
        group.unfinished = group.unfinished + 1
      end
      -- One that is set aside may come back: its lease stays, so that a late answer still counts.
      local kept = not entry and not letter and fetch.state.kept > 0 and redis.call('XRANGE', fetch.log, offset, offset)[1]
      if kept then shelved[#shelved + 1] = offset else retired[#retired + 1] = offset end
    elseif in_turn and entry[2][7] == 'k' and not order_rejoin(fetch.turns, offset, entry[2][8]) then
      -- Several of a key were out before the group took turns: its turn brings it.
      redis.call('ZREM', fetch.due, offset)
    elseif all_fit and deliver_fits(fetch, entry) then
      deliver_again(fetch, entry, held, is_out)
      if group.ack == 'none' then given[#given + 1] = offset end
    else
      all_fit = false
    end
  end
  for _, offsets in ipairs({retired, given}) do
    for _, offset in ipairs(offsets) do
      group_forget(fetch.pending, fetch.due, fetch.leases, offset)
      redis.call('HDEL', fetch.replayed, offset)
    end
    if group.ordered > 0 then order_pass(fetch.turns, fetch.ready, offsets) end
  end
  if #shelved > 0 then
    redis.call('ZREM', fetch.pending, unpack(shelved))
    redis.call('ZREM', fetch.due, unpack(shelved))
    out_remember(fetch, shelved)
    if group.ordered > 0 then order_pass(fetch.turns, fetch.ready, shelved) end
  end
  fetch.pending_count = group_taken(group, fetch)
  return all_fit and (has_more or #found == DELIVER_SCAN), not all_fit
end

-- What waited for its key, or came back after the group had passed it. Of a list whose messages have gone a bounded part
-- is passed over. Returns whether more is left, and whether one of them does not fit.
local function deliver_ready(fetch)
  local group, steps = fetch.group, 0
  local source = group.ordered == TURNS.on and fetch.ready or fetch.parked
  while steps < DELIVER_SCAN do
    if #fetch.out >= fetch.limit then return false end
    -- A replayed dead letter, or what the history brought, goes out also where there is no room for more.
    local room = deliver_room(fetch)
    local offsets = redis.call('ZRANGE', source, 0, (room > 0 and math.min(room, DELIVER_SCAN) or DELIVER_SCAN) - 1)
    if #offsets == 0 then return false end
    steps = steps + #offsets
    local waiting, left, passed, there, full = redis.call('ZMSCORE', fetch.parked, unpack(offsets)), {}, {}, {}, false
    for n, offset in ipairs(offsets) do
      local held = lease_read(fetch.leases, offset)
      if held or room > 0 then
        -- One that is out already comes again when it is due; one that was answered before its turn is passed over.
        local is_out = held and redis.call('ZSCORE', fetch.due, offset) and redis.call('ZSCORE', fetch.pending, offset)
        local entry = not is_out and (waiting[n] or held)
          and group_entry(fetch.log, fetch.gone, fetch.replayed, fetch.state, offset)
        local is_there = entry
        -- A filter that came while it waited.
        if entry and not held and not group_wants(group, entry) then entry, waiting[n] = nil, nil end
        local is_spent = entry and held and group_is_spent(group, held)
        if entry and not is_spent and not deliver_fits(fetch, entry) then full = true break end
        left[#left + 1] = offset
        if is_there then there[#there + 1] = offset end
        if is_spent then
          -- It was out for the last time when it went for a while.
          deliver_taken(fetch, held, redis.call('ZSCORE', fetch.pending, offset))
          deliver_bury(fetch, entry, held)
          group_forget(fetch.pending, fetch.due, fetch.leases, offset)
          entry = nil
        elseif entry then
          if held then
            deliver_again(fetch, entry, held, redis.call('ZSCORE', fetch.pending, offset))
          else
            deliver_one(fetch, entry, 1)
          end
          fetch.pending_count = fetch.pending_count + 1
        elseif not is_out and waiting[n] then
          group.missed = group.missed + 1
        end
        if not is_out and (not entry or group.ack == 'none') then passed[#passed + 1] = offset end
      end
    end
    if #left > 0 then
      redis.call('ZREM', fetch.ready, unpack(left))
      redis.call('ZREM', fetch.parked, unpack(left))
      -- An undo that is under way need not give it back any more.
      if #there > 0 then redis.call('ZREM', fetch.parked_aside, unpack(there)) end
      order_pass(fetch.turns, fetch.ready, passed)
    end
    if full or room <= 0 then return false, full end
  end
  return true
end

-- What went while it waited for its key is counted, not passed over in silence.
local function deliver_count_lost(fetch)
  local group, state = fetch.group, fetch.state
  if group.ordered > 0 then
    local below = math.min(2000, redis.call('ZCOUNT', fetch.parked, '-inf', state.floor - 1))
    if below > 0 then group.missed = group.missed + redis.call('ZREMRANGEBYRANK', fetch.parked, 0, below - 1) end
  end
end

-- What was never out, where a range of offsets is whole: nothing went from it, nothing in it expires by itself or is for
-- others. It goes out as a run. Few are read here, many by the caller, which costs less. Returns nil when the messages have
-- to be looked at, else whether there may be more.
local function deliver_range(fetch)
  local group, state, room = fetch.group, fetch.state, deliver_room(fetch)
  if #fetch.out > 0 or group.ordered > 0 or #group.filter > 0 or fetch.has_expiry then return nil end
  if room <= 0 or group.delivered >= state.last then return false end
  local page = math.min(room, DELIVER_SCAN, math.floor((fetch.max_bytes - fetch.size) / math.max(1, state.widest)))
  if page < math.min(room, DELIVER_RANGE) then return nil end
  local first = group.delivered + 1
  local last = math.min(state.last, group.delivered + page)
  if gone_between(fetch.gone, first, last) > 0 then return nil end
  fetch.range = {first, last, group.sequence + 1}
  if last - first < DELIVER_RANGE then
    fetch.entries = redis.call('XRANGE', fetch.log, string.format('%.0f', first), string.format('%.0f', last))
  end
  if group.ack ~= 'none' then
    local due = string.format('%.0f', fetch.latest + group_wait_ms(group, 1))
    runs_add(fetch, group, first, last, group.sequence + 1, due, string.format('%.0f', fetch.now), fetch.consumer)
    members_tell(group, fetch.consumer, last - first + 1, fetch.now)
  end
  group.sequence = group.sequence + last - first + 1
  group.delivered = last
  return last - first + 1 == page and page < room
end

-- A page of what was never out. Returns how many were looked at, and whether there may be more to look at.
local function deliver_page(fetch, page)
  local group, state, room = fetch.group, fetch.state, deliver_room(fetch)
  local in_turn = group.ordered == TURNS.on and group.ack ~= 'none'
  local found = redis.call('XRANGE', fetch.log, group.delivered + 1, state.last, 'COUNT', page)
  local order, parked, whole, before, visible, expired = nil, {}, true, group.delivered, 0, 0
  if in_turn then
    local keys = {}
    for _, entry in ipairs(found) do if entry[2][7] == 'k' then keys[#keys + 1] = entry[2][8] end end
    order = order_open(fetch.turns, keys)
  end
  for _, entry in ipairs(found) do
    local fields, is_visible = entry[2], entry_visible(fetch.gone, state, entry)
    if is_visible and group_wants(group, entry) then
      if room == 0 or not deliver_fits(fetch, entry) then whole = false break end
      local offset = string.match(entry[1], '^(%d+)')
      if order and fields[7] == 'k' and not order_join(order, offset, fields[8]) then
        parked[#parked + 1], parked[#parked + 2] = offset, offset
      else
        deliver_one(fetch, entry, 1)
        fetch.pending_count, room = fetch.pending_count + 1, room - 1
      end
    end
    group.delivered = entry_offset(entry)
    if is_visible then visible = visible + 1
    elseif group_wants(group, entry) and not gone_has(fetch.gone, group.delivered) then expired = expired + 1 end
  end
  if order then order_write(order) end
  if #parked > 0 then redis.call('ZADD', fetch.parked, unpack(parked)) end
  if whole and #found < page then group.delivered = state.last end
  -- With a filter, what was removed is in the journal; what has just expired is not there yet.
  group.missed = group.missed + (#group.filter > 0 and expired or group.delivered - before - visible)
  -- Taking turns, a fetch that has something does not go through all that waits to find more.
  return #found, whole and #found == page and not (in_turn and #fetch.out > 0)
end

-- Passes over what went in front of what comes next, however much it is: it counts as missed as if it had been looked at.
local function deliver_past_gone(fetch)
  local group, state = fetch.group, fetch.state
  local there = math.min(gone_next(fetch.gone, group.delivered + 1), state.last + 1)
  if #group.filter == 0 then group.missed = group.missed + there - 1 - group.delivered end
  group.delivered = there - 1
end

-- What was never out. Where much has gone, pages grow, so that who asks for one message is answered as soon as who asks for
-- many. Returns true when there may be more to look at.
local function deliver_new(fetch)
  local group, state = fetch.group, fetch.state
  local in_turn = group.ordered == TURNS.on and group.ack ~= 'none'
  if in_turn and redis.call('ZCARD', fetch.parked) >= ORDER_AHEAD then return false end
  local page, looked, more = (in_turn or #group.filter > 0) and DELIVER_SCAN or deliver_room(fetch), 0, true
  while more and looked < DELIVER_SCAN do
    if deliver_room(fetch) <= 0 or group.delivered >= state.last then return false end
    deliver_past_gone(fetch)
    if group.delivered >= state.last then return false end
    local fitting = math.floor((fetch.max_bytes - fetch.size) / math.max(1, state.widest))
    page = math.max(1, math.min(DELIVER_SCAN - looked, page, fitting))
    local seen
    seen, more = deliver_page(fetch, page)
    looked, page = looked + seen, page * 2
  end
  return more
end

-- The two places of what is physically removed. unseen_from: the first offset that the history has not seen and should.
-- Needs gone, floor, removal and budget.

local DROP_PLAIN, DROP_TIMED, DROP_READ, DROP_HIDDEN = 10000, 250, 100, 100

-- Forgets the keys whose last message is among these entries, and what the index knows of them.
local function drop_keys(stream, state, entries)
  local keys, offsets = {}, {}
  for _, entry in ipairs(entries) do
    local fields = entry[2]
    if fields[7] == 'k' then
      keys[#keys + 1] = fields[8]
      offsets[#offsets + 1] = string.match(entry[1], '^(%d+)')
    end
  end
  if #keys == 0 then return end
  if redis.call('EXISTS', stream.latest) == 1 then
    local members = {}
    for n, key in ipairs(keys) do members[n] = latest_member(key, tonumber(offsets[n])) end
    redis.call('ZREM', stream.latest, unpack(members))
  end
  removal_forget_keys(stream, state, keys, offsets)
end

-- So many bodies may be read in one step.
local function drop_read(state, most) return math.max(1, math.min(most, math.floor(4194304 / math.max(1, state.widest)))) end

-- Removes a step of the entries from an offset on, below another; returns how many, and below which offset all are gone.
local function drop_step(stream, state, from, stop)
  local upto = math.min(stop, from + DROP_PLAIN)
  if redis.call('EXISTS', stream.expiry) == 1 then
    -- What went before its time has none to wait for.
    upto = math.min(upto, from + DROP_TIMED)
    local offsets = {}
    for offset = from, upto - 1 do offsets[#offsets + 1] = string.format('%d', offset) end
    redis.call('ZREM', stream.expiry, unpack(offsets))
  end
  if from < state.keys_from then
    upto = math.min(upto, state.keys_from)
  elseif redis.call('EXISTS', stream.by_key) == 1 then
    upto = math.min(upto, from + drop_read(state, DROP_READ))
    drop_keys(stream, state, redis.call('XRANGE', stream.log, from, upto - 1))
  end
  local removed = redis.call('XTRIM', stream.log, 'MINID', string.format('%.0f', upto))
  if state.hidden == 1 then redis.call('ZREMRANGEBYSCORE', stream.hidden, '-inf', string.format('(%.0f', upto)) end
  return removed, upto
end

-- Removes entries below an offset while the budget lasts; returns how many, how many unseen, and whether all are gone.
local function drop_below(stream, state, from, stop, unseen_from, budget)
  local removed, missed = 0, 0
  while from < stop do
    local went, upto = drop_step(stream, state, from, stop)
    removed, missed = removed + went, missed + math.max(0, math.min(went, upto - unseen_from))
    from = upto
    if not budget_goes_on(budget) then break end
  end
  return removed, missed, from >= stop
end

-- Removes what a person took away behind what still waits for the history, but for what a limit had hidden there before;
-- returns how many, below which offset all are gone, and whether all are.
local function drop_taken(stream, state, from, stop, budget)
  local removed, step = 0, drop_read(state, DROP_READ)
  while from < stop do
    local found, ids, offsets, taken = redis.call('XRANGE', stream.log, from, stop - 1, 'COUNT', step), {}, {}, {}
    local last, waiting = #found > 0 and entry_offset(found[#found]), {}
    if last and state.hidden == 1 then
      local marked = gone_marked(stream.gone, from, last)
      for _, offset in ipairs(redis.call('ZRANGEBYSCORE', stream.hidden, from, last)) do waiting[offset] = not marked[offset] end
    end
    for _, entry in ipairs(found) do
      local offset = string.match(entry[1], '^%d+')
      if not waiting[offset] then ids[#ids + 1], offsets[#offsets + 1], taken[#taken + 1] = entry[1], offset, entry end
    end
    drop_keys(stream, state, taken)
    if #ids > 0 then
      redis.call('ZREM', stream.expiry, unpack(offsets))
      if state.hidden == 1 then redis.call('ZREM', stream.hidden, unpack(offsets)) end
      removed = removed + redis.call('XDEL', stream.log, unpack(ids))
    end
    if #found < step then return removed, stop, true end
    from = last + 1
    if not budget_goes_on(budget) then return removed, from, from >= stop end
  end
  return removed, stop, true
end

-- Removes hidden entries below an offset while the budget lasts; returns the same.
local function drop_hidden(stream, state, stop, unseen_from, budget)
  local removed, missed, step = 0, 0, drop_read(state, DROP_HIDDEN)
  repeat
    local loose = redis.call('ZRANGEBYSCORE', stream.hidden, '-inf', string.format('(%.0f', stop), 'LIMIT', 0, step)
    local found, ids = {}, {}
    for n = 1, #loose do
      local entry = redis.call('XRANGE', stream.log, loose[n], loose[n])[1]
      if entry then
        found[#found + 1], ids[#ids + 1] = entry, entry[1]
        if tonumber(loose[n]) >= unseen_from then missed = missed + 1 end
      end
    end
    drop_keys(stream, state, found)
    if #ids > 0 then removed = removed + redis.call('XDEL', stream.log, unpack(ids)) end
    if #loose > 0 then redis.call('ZREM', stream.hidden, unpack(loose)) end
    if #loose < step then return removed, missed, true end
  until not budget_goes_on(budget)
  return removed, missed, false
end

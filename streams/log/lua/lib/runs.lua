-- What a fetch took as a whole: neighbours that went out together, for the first time, of a stream where nothing expired by
-- itself. Such a run is one record, "<first>:<last>:<sequence of the first>:<due>:<delivered ms>:<consumer>", in runs at its
-- last offset and in due at its time; an answer to a part of it leaves the rest a run. What else touches a message first
-- has it opened: it then stands in pending, due and leases like any other. Needs the includes gone, members and group; keys are one
-- table: runs, pending, due, leases.

local RUNS_SLICE = 1000

local function runs_read(member)
  local first, last, sequence, due, at_ms, consumer = string.match(member, '^(%d+):(%d+):(%d+):(%d+):(%d+):(.*)$')
  if not first then return nil end
  return {member = member, first = tonumber(first), last = tonumber(last), sequence = tonumber(sequence), due = due,
    at_ms = at_ms, consumer = consumer}
end

local function runs_add(keys, group, first, last, sequence, due, at_ms, consumer)
  local member = string.format('%.0f:%.0f:%.0f:%s:%s:%s', first, last, sequence, due, at_ms, consumer)
  redis.call('ZADD', keys.runs, string.format('%.0f', last), member)
  redis.call('ZADD', keys.due, due, member)
  group.runs, group.in_runs = group.runs + 1, group.in_runs + last - first + 1
end

-- The first run that ends at an offset or behind it.
local function runs_from(keys, offset)
  local found = redis.call('ZRANGEBYSCORE', keys.runs, string.format('%.0f', offset), '+inf', 'LIMIT', 0, 1)[1]
  return found and runs_read(found)
end

-- Whether an offset is in a run.
local function runs_hold(keys, offset)
  local run = runs_from(keys, offset)
  return run and run.first <= offset or false
end

-- Takes a part out of its run.
local function runs_cut(keys, group, run, first, last)
  redis.call('ZREM', keys.runs, run.member)
  redis.call('ZREM', keys.due, run.member)
  group.runs, group.in_runs = group.runs - 1, group.in_runs - (run.last - run.first + 1)
  if run.first < first then
    runs_add(keys, group, run.first, first - 1, run.sequence, run.due, run.at_ms, run.consumer)
  end
  if last < run.last then
    runs_add(keys, group, last + 1, run.last, run.sequence + last + 1 - run.first, run.due, run.at_ms, run.consumer)
  end
end

-- Makes messages of their own of a part of a run.
local function runs_open(keys, group, run, first, last)
  runs_cut(keys, group, run, first, last)
  local in_order, by_time, held_by, tail = {}, {}, {}, ':' .. run.at_ms .. ':' .. run.consumer
  for offset = first, last do
    local at, text = 2 * (offset - first), string.format('%.0f', offset)
    in_order[at + 1], in_order[at + 2] = text, text
    by_time[at + 1], by_time[at + 2] = run.due, text
    held_by[at + 1], held_by[at + 2] = text, string.format('1:%.0f', run.sequence + offset - run.first) .. tail
  end
  group_hold(keys, in_order, by_time, held_by)
end

-- Opens what is named of these offsets (texts), as stretches of neighbours.
local function runs_open_named(keys, group, offsets)
  if group.runs == 0 then return end
  local named = {}
  for n, offset in ipairs(offsets) do named[n] = tonumber(offset) end
  table.sort(named)
  local at, run = 1, nil
  while at <= #named do
    if not run or run.last < named[at] then run = runs_from(keys, named[at]) end
    if not run then return end
    if named[at] < run.first then
      at = at + 1
    else
      local first, last = named[at], named[at]
      while named[at] and named[at] <= math.min(last + 1, run.last) do at, last = at + 1, named[at] end
      runs_open(keys, group, run, first, last)
      run = nil
    end
  end
end

-- The lowest offsets that these members of due stand for, at most so many, in order; what of them is in runs is opened.
-- And whether there are more.
local function runs_open_due(keys, group, members, most)
  local firsts, named, offsets = {}, {}, {}
  for n, member in ipairs(members) do
    firsts[n] = tonumber(string.match(member, '^%d+'))
    named[firsts[n]] = member
  end
  table.sort(firsts)
  for _, first in ipairs(firsts) do
    if #offsets == most then return offsets, true end
    local run, last = runs_read(named[first]), first
    if run then
      last = math.min(run.last, first + most - #offsets - 1)
      runs_open(keys, group, run, first, last)
    end
    for offset = first, last do offsets[#offsets + 1] = string.format('%.0f', offset) end
    if run and last < run.last then return offsets, true end
  end
  return offsets, false
end

-- Whether nothing went from a part of a run. What is in one does not expire by itself.
local function runs_are_there(keys, state, first, last)
  return first >= state.floor and gone_between(keys.gone, first, last) == 0
end

-- Opens the runs that lost something since, in a slice from an offset on; returns where the slice ends, if there is more.
local function runs_sweep(keys, state, group, from)
  if group.runs == 0 then return nil end
  local opened, found = 0, redis.call('ZRANGEBYSCORE', keys.runs, string.format('%.0f', from), '+inf', 'LIMIT', 0, 100)
  for n, member in ipairs(found) do
    local run = runs_read(member)
    if not runs_are_there(keys, state, run.first, run.last) then
      runs_open(keys, group, run, run.first, run.last)
      opened = opened + run.last - run.first + 1
    end
    if n == 100 or opened >= RUNS_SLICE then return run.last end
  end
  return nil
end

-- The stretches {first, last} that leases name, in order, in runs that are all there; nil where one is of something else.
local function runs_leased(keys, state, group, leases)
  if group.runs == 0 then return nil end
  local stretches, run, last, ahead = {}, nil, nil, nil
  local text = string.format('%.0f-%%.0f-%%.0f', group.generation)
  for _, lease in ipairs(leases) do
    local offset = run and last < run.last and last + 1
    if offset and lease == string.format(text, offset, offset + ahead) then
      stretches[#stretches][2] = offset
    else
      offset = tonumber(string.match(lease, '^%d+%-(%d+)%-%d+$') or nil)
      if not offset or (last and offset <= last) then return nil end
      run = runs_from(keys, offset)
      if not run or offset < run.first or not runs_are_there(keys, state, run.first, run.last) then return nil end
      ahead = run.sequence - run.first
      if lease ~= string.format(text, offset, offset + ahead) then return nil end
      stretches[#stretches + 1] = {offset, offset}
    end
    last = offset
  end
  return stretches
end

-- Settles what is in runs from one offset up to another, at most so many runs: what is all there at once; what is not is
-- opened. Runs of others than the holder, where one is given, are passed by. Returns how many messages, and where to go on if
-- there may be more; group.settled collects the stretches.
local function runs_settle(keys, state, group, from, upto, most, holder)
  local count, opened, settled = 0, 0, group.settled or {}
  group.settled = settled
  for _ = 1, most do
    local run = group.runs > 0 and runs_from(keys, from)
    if not run or run.first > upto then return count, nil end
    local first, last = math.max(run.first, from), math.min(run.last, upto)
    if holder and run.consumer ~= holder then
      -- It stays as it is.
    elseif runs_are_there(keys, state, first, last) then
      runs_cut(keys, group, run, first, last)
      members_tell(group, run.consumer, first - last - 1, nil, last - first + 1)
      count, settled[#settled + 1] = count + last - first + 1, {first, last}
    else
      runs_open(keys, group, run, first, last)
      opened = opened + last - first + 1
    end
    from = last + 1
    if opened >= RUNS_SLICE then break end
  end
  return count, from <= upto and from or nil
end

-- The lease of a message in a run, as lease_read answers it.
local function runs_lease(run, offset)
  local sequence = string.format('%.0f', run.sequence + offset - run.first)
  return {deliveries = 1, sequence = sequence, at_ms = run.at_ms, consumer = run.consumer}
end

-- What is in runs from an offset on: {offset, run} in order, at most so many.
local function runs_list(keys, from, most)
  local listed = {}
  local found = redis.call('ZRANGEBYSCORE', keys.runs, string.format('%.0f', from), '+inf', 'LIMIT', 0, most)
  for _, member in ipairs(found) do
    local run = runs_read(member)
    for offset = math.max(from, run.first), run.last do
      if #listed >= most then return listed end
      listed[#listed + 1] = {offset, run}
    end
  end
  return listed
end

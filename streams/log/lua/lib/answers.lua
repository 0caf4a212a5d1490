-- What an answer to deliveries is about. Needs the includes state, gone, floor, members, group, runs, order and out, and their keys.
-- An answer is a table: mode (offsets, neighbours, up_to or leases) and values (of neighbours the first and the last offset, of
-- up_to the highest and where to begin); holder: the consumer whose deliveries count, or nil for whoever has them; covers:
-- whether it is about everything before it, too; is_final: whether what is answered never comes again, also when it is
-- brought back; also_undelivered: whether what did not go out since it was replayed or given back counts, too.

-- holder: empty, or "=" and the consumer.
local function answer_read(mode, holder, values)
  return {mode = mode, holder = string.match(holder, '^=(.*)$'), values = values}
end

-- The offsets (texts) that values name, and by lease the sequences; what has one of before a seek is another delivery.
local function answer_named(group, mode, values)
  if mode ~= 'leases' then return values, {} end
  local named, wanted = {}, {}
  for n, lease in ipairs(values) do
    local generation, offset, sequence = string.match(lease, '^(%d+)%-(%d+)%-(%d+)$')
    generation = tonumber(generation)
    named[n] = generation and generation <= group.generation and offset or '0'
    wanted[n] = generation == group.generation and sequence or 'void'
  end
  return named, wanted
end

-- Of what is named that is on its own, what an answer is about, each once. Nil and a lease where another delivery has the
-- message of one. What was replayed or given back and did not go out since has a lease without a sequence.
local function answer_held(keys, state, answer, named, wanted)
  local offsets, seen, passed = {}, {}, {}
  for first = 1, #named, 1000 do
    for n, held in ipairs(redis.call('HMGET', keys.leases, unpack(named, first, math.min(first + 999, #named)))) do
      local at = first + n - 1
      local offset, wants = named[at], wanted[at]
      local sequence, consumer = string.match(held or '', '^%d+:(%d+):%d+:(.*)$')
      local is_delivered = sequence and sequence ~= '0'
      if is_delivered and wants and sequence ~= wants then passed[offset] = answer.values[at] end
      local counts = is_delivered and (not answer.holder or consumer == answer.holder)
        or (held and answer.also_undelivered and not answer.holder)
      if counts and not seen[offset] then
        seen[offset] = true
        offsets[#offsets + 1] = offset
      end
    end
  end
  if next(passed) then
    local went = out_went(keys, state, offsets)
    for offset, lease in pairs(passed) do if not went[offset] then return nil, lease end end
  end
  return offsets
end

-- Everything delivered from one offset up to another, of a slice of what is out; and how to go on, if anything is left.
local function answer_upto(keys, upto, from)
  local last = string.format('%.0f', upto)
  local found = redis.call('ZRANGEBYSCORE', keys.pending, string.format('%.0f', from), last, 'LIMIT', 0, OUT_SLICE)
  local offsets, leases = {}, #found > 0 and redis.call('HMGET', keys.leases, unpack(found)) or {}
  for n, offset in ipairs(found) do
    if not leases[n] or members_of_lease(leases[n]) then offsets[#offsets + 1] = offset end
  end
  return offsets, #found == OUT_SLICE and {'up_to', upto, tonumber(found[#found]) + 1} or {}
end

-- What went for a while while it was out, up to an offset, a slice of it; and whether there may be more.
local function answer_shelved(keys, upto)
  local shelved = redis.call('ZRANGEBYSCORE', keys.shelved, '-inf', string.format('%.0f', upto), 'LIMIT', 0, OUT_SLICE)
  return shelved, #shelved == OUT_SLICE
end

-- Settles what of neighbours is in runs, and names a slice of them, by offset, for what is on its own. Where the answer covers
-- what is before it that is its end, which covers the rest. Returns how many were settled, and how to go on.
local function answer_neighbours(keys, state, group, answer)
  local first, last = tonumber(answer.values[1]), tonumber(answer.values[2])
  local low, high, taken, following, more = first, last, 0, nil, {}
  if not answer.covers then
    taken, following = runs_settle(keys, state, group, first, last, 200, answer.holder)
    high = following and following - 1 or last
    if taken == high - first + 1 then low = high + 1 else high = math.min(high, first + OUT_SLICE - 1) end
    if high < last then more = {'neighbours', high + 1, last} end
  else
    low = answer.holder and math.max(first, last - OUT_SLICE + 1) or last
    if answer.holder and low > first then more = {'neighbours', first, low - 1} end
  end
  answer.mode, answer.values = 'offsets', {}
  for offset = low, high do answer.values[offset - low + 1] = string.format('%.0f', offset) end
  return taken, more
end

-- How many of these offsets are out; of what went, those that nobody has counted yet: what is set aside keeps its lease only.
local function answer_out(keys, offsets)
  local count = 0
  for first = 1, #offsets, 1000 do
    for _, place in ipairs(redis.call('ZMSCORE', keys.pending, unpack(offsets, first, math.min(first + 999, #offsets)))) do
      if place then count = count + 1 end
    end
  end
  return count
end

-- What an answer is about, all of it out and there; what of it went is forgotten. Returns nil and the lost lease when one of
-- the leases has passed to another delivery; else the offsets, how an answer that covers more goes on, how many keys' turns
-- came, how many more were settled as runs, up to where it covers, and what of it went.
local function answer_find(keys, state, group, answer)
  local offsets, more, highest, from, settled, following = nil, {}, 0, 0, 0, nil
  if answer.mode == 'up_to' then
    answer.covers, highest, from = true, tonumber(answer.values[1]), tonumber(answer.values[2] or 0)
  elseif answer.covers and answer.mode == 'offsets' and not answer.holder then
    for _, value in ipairs(answer.values) do highest = math.max(highest, tonumber(value)) end
  else
    local named, wanted = answer_named(group, answer.mode, answer.values)
    local lost
    runs_open_named(keys, group, named)
    offsets, lost = answer_held(keys, state, answer, named, wanted)
    if not offsets then return nil, lost end
    for _, offset in ipairs(offsets) do highest = math.max(highest, tonumber(offset)) end
  end
  if answer.covers then
    settled, following = runs_settle(keys, state, group, 0, highest, 100)
    offsets, more = answer_upto(keys, highest, from)
    if following then more = {'up_to', highest, 0} end
  end
  local shelved, has_shelved = {}, false
  if answer.covers and answer.is_final then shelved, has_shelved = answer_shelved(keys, highest) end
  if has_shelved and not more[1] then more = {'up_to', highest, from} end
  local went, there, gone = out_went(keys, state, offsets), {}, {}
  for _, offset in ipairs(offsets) do
    if went[offset] then gone[#gone + 1] = offset else there[#there + 1] = offset end
  end
  group.unfinished = group.unfinished + answer_out(keys, gone)
  local came = answer.is_final and out_forget(keys, group, gone) or out_shelve(keys, state, group, gone)
  came = came + out_forget(keys, group, shelved)
  return there, more, came, settled, highest, gone
end

-- Retention by interest: a message goes once no group wants it any more. Everything up to state.passed has been looked
-- at, and what a group still wanted then stands in "kept". Needs state, gone, floor, group, runs and removal.

-- Whether no group wants an entry any more: each has it answered, was given it under ack none, or filters it out.
local function interest_is_over(readers, entry)
  local offset = entry_offset(entry)
  for _, reader in ipairs(readers) do
    if group_wants(reader.group, entry) then
      if offset > reader.group.delivered then return false end
      for _, key in ipairs(reader.waiting) do
        if redis.call('ZSCORE', key, offset) then return false end
      end
      if reader.group.runs > 0 and runs_hold(reader, offset) then return false end
    end
  end
  return true
end

-- What a turn has come to once it has looked at all that was kept: what is new comes next, whole, or each page of it would
-- look at all that is kept.
local INTEREST_NEW = -1

-- Looks again at a page of what was kept, from where the last page ended; true at the end.
local function interest_of_kept(stream, state, removal, readers, kept, page)
  if state.turn == INTEREST_NEW then return true end
  local found = redis.call('ZRANGEBYSCORE', kept, string.format('(%.0f', state.turn), '+inf', 'LIMIT', 0, page)
  for _, offset in ipairs(found) do
    local entry = tonumber(offset) >= state.floor and redis.call('XRANGE', stream.log, offset, offset)[1]
    local is_there = entry and not (state.hidden == 1 and gone_has(stream.gone, tonumber(offset)))
    local is_over = is_there and interest_is_over(readers, entry)
    if is_over then removal_take(removal, entry) end
    if is_over or not is_there then redis.call('ZREM', kept, offset) end
    state.turn = tonumber(offset)
  end
  if #found == page then return false end
  state.turn = INTEREST_NEW
  return true
end

-- Looks at a page of what every group without a filter has been given since; true at the end, and of the turn.
local function interest_of_new(stream, state, removal, readers, kept, page)
  local stop = state.last
  for _, reader in ipairs(readers) do
    if #reader.group.filter == 0 then stop = math.min(stop, reader.group.delivered) end
  end
  state.passed = math.max(state.passed, state.floor - 1)
  if state.passed >= stop then
    state.turn = 0
    return true
  end
  local found = redis.call('XRANGE', stream.log, state.passed + 1, stop, 'COUNT', page)
  for _, entry in ipairs(found) do
    local offset = entry_offset(entry)
    if not (state.hidden == 1 and gone_has(stream.gone, offset)) then
      if interest_is_over(readers, entry) then removal_take(removal, entry)
      else redis.call('ZADD', kept, offset, offset) end
    end
    state.passed = offset
  end
  if #found == page then return false end
  state.passed, state.turn = stop, 0
  return true
end

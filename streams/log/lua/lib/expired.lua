-- Taking away what is over by its own time, in steps of fifty messages or so. Needs clock, state, gone, floor, removal and budget.

local EXPIRED_LOOK, EXPIRED_ROW, EXPIRED_STEP = 16, 128, 50

-- What is over mostly is the oldest, in a row: it goes by raising the floor. One step of so many from an offset on: where the
-- row goes on or, where the second answer is true, ends.
local function expired_row(stream, state, from, most, went)
  local offsets, over = {}, {}
  for offset = from, math.min(from + most - 1, state.last) do offsets[#offsets + 1] = string.format('%d', offset) end
  if #offsets == 0 then return from, true end
  local ends = redis.call('ZMSCORE', stream.expiry, unpack(offsets))
  local upto, is_end = from, false
  for n, offset in ipairs(offsets) do
    if ends[n] and tonumber(ends[n]) <= steady_ms() then over[#over + 1] = offset
    elseif not went(upto) then
      is_end = true
      break
    end
    upto = upto + 1
  end
  if #over > 0 then redis.call('ZREM', stream.expiry, unpack(over)) end
  return is_end and upto or gone_next(stream.gone, upto), is_end
end

-- Takes the row of the oldest away. What was removed for a while below it could not come back then, so not where there is
-- any. Returns how many went, and whether there may be more.
local function expired_oldest(stream, state, budget)
  if state.kept > 0 then return 0, false end
  local went = gone_looker(stream.gone)
  local upto, is_end = expired_row(stream, state, state.floor, EXPIRED_LOOK, went)
  while not is_end do
    upto, is_end = expired_row(stream, state, upto, EXPIRED_ROW, went)
    if not budget_goes_on(budget) then break end
  end
  return (raise_floor(stream.log, stream.gone, state, upto)), not is_end
end

-- The entries of these offsets, which are in order; neighbours are read together.
local function expired_entries(stream, removal, offsets)
  local first = 1
  for n = 1, #offsets do
    if offsets[n + 1] ~= offsets[n] + 1 then
      for _, entry in ipairs(redis.call('XRANGE', stream.log, offsets[first], offsets[n])) do removal_take(removal, entry) end
      first = n + 1
    end
  end
end

-- Takes a step of them from between others; true where there may be more.
local function expired_between(stream, state, removal)
  local step = math.max(1, math.min(EXPIRED_STEP, math.floor(4194304 / math.max(1, state.widest))))
  local due, offsets, lowest = redis.call('ZRANGEBYSCORE', stream.expiry, '-inf', steady_ms(), 'LIMIT', 0, step), {}, floor_or_kept(state)
  if #due == 0 then return false end
  for _, offset in ipairs(due) do
    if tonumber(offset) >= lowest then offsets[#offsets + 1] = tonumber(offset) end
  end
  table.sort(offsets)
  expired_entries(stream, removal, offsets)
  redis.call('ZREMRANGEBYRANK', stream.expiry, 0, #due - 1) -- these, which are the first
  removal_end(stream, state, removal)
  return #due == step
end

-- Takes away what is over as long as the budget and, where it is given, need lasts; returns how many went, and whether none is
-- left to look at.
local function expired_take(stream, state, budget, need)
  if redis.call('ZCOUNT', stream.expiry, '-inf', steady_ms()) == 0 then return 0, true end
  local went, is_more = expired_oldest(stream, state, budget)
  local removal = removal_begin()
  while not is_more do
    if need and not need() then break end
    if not expired_between(stream, state, removal) then return went + removal.messages, true end
    is_more = not budget_goes_on(budget)
  end
  return went + removal.messages, false
end

-- What is over by its own time makes room before count and size take what may stay; these wait where there is more of it than
-- can be looked at now. least: so many steps are done in any case.
local function expired_make_room(stream, state, least)
  state.crowded = 0
  if not floor_is_passed(state) then return end
  local _, is_all = expired_take(stream, state, budget_begin(least), function() return floor_is_passed(state) end)
  if not is_all and floor_is_passed(state) then state.crowded = 1 end
end

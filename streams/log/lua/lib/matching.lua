-- How many messages match a group's filter, by blocks of offsets. Needs the includes state, gone, floor, group
-- and budget.
-- counted is a hash: "<block>" -> "<counted up to>:<matching>:<deleted>", and "low" -> the lowest block that may be there.

local MATCHING_BLOCK = 256

-- So many are added in one call at most, and so many are read at once.
local MATCHING_BLOCKS, MATCHING_PAGE = 1000, 100

local function matching_start(offset) return math.floor(offset / MATCHING_BLOCK) * MATCHING_BLOCK end

local function matching_end(offset) return matching_start(offset) + MATCHING_BLOCK - 1 end

local function matching_open(log, gone, counted, state, group)
  -- So many entries are looked at in one call; their bodies are read, too.
  local budget = math.max(1, math.min(2000, math.floor(8388608 / math.max(1, state.widest))))
  return {log = log, gone = gone, counted = counted, state = state, group = group,
    budget = budget, clock = budget_begin(), total = 0, first_ms = 0}
end

-- Adds what matches from first to last, as far as one call may look; returns how many, and up to where it looked.
local function matching_scan(count, first, last)
  local found, matching = redis.call('XRANGE', count.log, first, last, 'COUNT', math.max(1, count.budget)), 0
  for _, entry in ipairs(found) do
    if entry_visible(count.gone, count.state, entry) and group_wants(count.group, entry) then
      matching = matching + 1
      if count.total == 0 and matching == 1 then count.first_ms = entry_ms(entry) end
    end
  end
  local upto = last
  if #found >= math.max(1, count.budget) then upto = entry_offset(found[#found]) end
  count.budget = count.budget - #found
  count.total = count.total + matching
  if upto < last then count.stopped = upto + 1 end
  return matching, upto
end

-- Adds one block of which so much is held; returns what is to be held of it, nil where that is the same.
local function matching_block(count, start, stop, held)
  local upto, matching, gone = string.match(held or '', '^(%d+):(%d+):(%d+)$')
  upto, matching = tonumber(upto), tonumber(matching)
  if not upto or gone_between(count.gone, start, upto) ~= tonumber(gone) then upto, matching = start - 1, 0 end
  if matching > 0 and count.total == 0 then
    local looked = count.budget
    count.budget = MATCHING_BLOCK
    matching_scan(count, start, upto)
    count.budget, count.stopped, count.total = looked, nil, 0
  end
  count.total = count.total + matching
  if upto >= stop then return nil end
  if count.budget <= 0 or (count.is_begun and not budget_goes_on(count.clock)) then
    count.stopped = upto + 1
    return nil
  end
  count.is_begun = true
  local more
  more, upto = matching_scan(count, upto + 1, stop)
  return string.format('%.0f:%.0f:%.0f', upto, matching + more, (gone_between(count.gone, start, upto)))
end

-- Adds the blocks from the one that starts at an offset, until the end or until enough was looked at.
local function matching_blocks(count, from)
  local last = count.state.last
  if count.stopped or from > last then return end
  local block, last_block, fresh = from / MATCHING_BLOCK, math.floor(last / MATCHING_BLOCK), {}
  local end_block = math.min(last_block, block + MATCHING_BLOCKS - 1)
  while block <= end_block and not count.stopped do
    local names = {}
    for each = block, math.min(end_block, block + MATCHING_PAGE - 1) do names[#names + 1] = string.format('%.0f', each) end
    local held = redis.call('HMGET', count.counted, unpack(names))
    for n, name in ipairs(names) do
      local start = (block + n - 1) * MATCHING_BLOCK
      local known = matching_block(count, start, math.min(start + MATCHING_BLOCK - 1, last), held[n])
      if known then fresh[#fresh + 1], fresh[#fresh + 2] = name, known end
      if count.stopped then break end
    end
    block = block + #names
  end
  if #fresh > 0 then redis.call('HSET', count.counted, unpack(fresh)) end
  if not count.stopped and end_block < last_block then count.stopped = (end_block + 1) * MATCHING_BLOCK end
end

-- Drops the blocks that no seek can come back to.
local function matching_forget(count)
  local low = tonumber(redis.call('HGET', count.counted, 'low') or 0)
  local upto = math.min(math.floor(count.state.floor / MATCHING_BLOCK), low + MATCHING_BLOCKS)
  if upto <= low then return end
  local names = {}
  for block = low, upto - 1 do names[#names + 1] = string.format('%.0f', block) end
  redis.call('HDEL', count.counted, unpack(names))
  redis.call('HSET', count.counted, 'low', string.format('%.0f', upto))
end

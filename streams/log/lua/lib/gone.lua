-- What went from between visible messages, in one sorted set whose size follows what is left rather than what went.
-- Neighbours share a run "<first>:<last>:<bytes>" at its first offset, within a block of 256 offsets; the sums of whole
-- blocks of 256, 256^2 and 256^3 offsets, "<level>:<block>:<count>:<bytes>", stand at scores below zero. So a range of
-- any length is counted in a few hundred steps.

local GONE_BLOCK = 256
local GONE_LEVELS, GONE_LEVEL_SCORE = 3, 2 ^ 48
local GONE_ASIDE, GONE_OVER = ':a', ':o'

local function gone_whole(number) return string.format('%.0f', number) end

local function gone_score(level, block) return gone_whole(-(level * GONE_LEVEL_SCORE + block)) end

local function gone_run(member)
  local first, last, bytes, mark = string.match(member, '^(%d+):(%d+):(%d+)(.*)$')
  return {member = member, first = tonumber(first), last = tonumber(last), bytes = tonumber(bytes), mark = mark}
end

-- The run that holds an offset or, in the same block, comes before it.
local function gone_run_upto(gone, offset)
  local start = offset - offset % GONE_BLOCK
  local member = redis.call('ZREVRANGEBYSCORE', gone, gone_whole(offset), gone_whole(start), 'LIMIT', 0, 1)[1]
  return member and gone_run(member)
end

-- Whether the message at an offset went.
local function gone_has(gone, offset)
  local run = gone_run_upto(gone, offset)
  return run and run.last >= offset or false
end

-- Which of the offsets between two, both included, have a mark, as texts.
local function gone_marked(gone, first, last)
  local found = {}
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', gone, gone_whole(first), gone_whole(last))) do
    local run = gone_run(member)
    if run.mark ~= '' then found[gone_whole(run.first)] = true end
  end
  return found
end

-- What a purge had set aside from an offset on, below another, is back, and what of it was over went as if it had never been
-- away. Of very many runs the rest keeps its mark, so that nobody waits.
local function gone_came_back(gone, first, stop)
  local found = redis.call('ZRANGEBYSCORE', gone, gone_whole(first), gone_whole(stop - 1), 'LIMIT', 0, 1000)
  for _, member in ipairs(found) do
    local run = gone_run(member)
    if run.mark == GONE_OVER then
      redis.call('ZREM', gone, member)
      redis.call('ZADD', gone, gone_whole(run.first), (string.gsub(member, GONE_OVER .. '$', '')))
    end
  end
end

-- Tells of many offsets whether their messages went, with one look a block.
local function gone_looker(gone)
  if redis.call('EXISTS', gone) == 0 then return function() return false end end
  local blocks = {}
  return function(offset)
    local start = offset - offset % GONE_BLOCK
    if not blocks[start] then
      blocks[start] = {}
      for _, member in ipairs(redis.call('ZRANGEBYSCORE', gone, gone_whole(start), gone_whole(start + GONE_BLOCK - 1))) do
        local run = gone_run(member)
        for each = run.first, run.last do blocks[start][each] = true end
      end
    end
    return blocks[start][offset] or false
  end
end

-- Notes that messages went: neighbours in one block, none of which was noted before. The sums wait in pending for
-- gone_settle. No run reaches over the floor: its bytes could not be told apart. One with a mark is a run of its own: GONE_ASIDE
-- is set aside alone, GONE_OVER was over by its own time when a purge had set it aside.
local function gone_add_run(gone, pending, floor, first, last, bytes, mark)
  local block = math.floor(first / GONE_BLOCK)
  local sum = pending[block] or {0, 0}
  pending[block] = {sum[1] + last - first + 1, sum[2] + bytes}
  local left = not mark and first > floor and gone_run_upto(gone, first)
  if left and left.last == first - 1 and left.mark == '' then
    first, bytes = left.first, bytes + left.bytes
    redis.call('ZREM', gone, left.member)
  end
  if not mark and (last + 1) % GONE_BLOCK ~= 0 then
    local member = redis.call('ZRANGEBYSCORE', gone, gone_whole(last + 1), gone_whole(last + 1))[1]
    local right = member and gone_run(member)
    if right and right.mark == '' then
      last, bytes = right.last, bytes + right.bytes
      redis.call('ZREM', gone, right.member)
    end
  end
  redis.call('ZADD', gone, gone_whole(first), string.format('%.0f:%.0f:%.0f', first, last, bytes) .. (mark or ''))
end

-- Takes back what gone_add noted of a message that was set aside.
local function gone_return(gone, pending, offset, size)
  redis.call('ZREM', gone, string.format('%.0f:%.0f:%.0f:a', offset, offset, size))
  local block = math.floor(offset / GONE_BLOCK)
  local sum = pending[block] or {0, 0}
  pending[block] = {sum[1] - 1, sum[2] - size}
end

-- Brings the sums up to date with what gone_add and gone_return noted. The sum of a block of which gone_forget has forgotten
-- a part is never read: it began anew then, and begins anew where it would say less than nothing, as what it did not hold comes
-- back.
local function gone_settle(gone, pending)
  for level = 1, GONE_LEVELS do
    local above = {}
    for block, sum in pairs(pending) do
      local score = gone_score(level, block)
      local member = redis.call('ZRANGEBYSCORE', gone, score, score)[1]
      local count, bytes = 0, 0
      if member then
        count, bytes = string.match(member, ':(%d+):(%d+)$')
        count, bytes = tonumber(count or 0), tonumber(bytes or 0)
        redis.call('ZREM', gone, member)
      end
      if count + sum[1] > 0 and bytes + sum[2] >= 0 then
        redis.call('ZADD', gone, score, string.format('%d:%.0f:%.0f:%.0f', level, block, count + sum[1], bytes + sum[2]))
      end
      local parent = math.floor(block / GONE_BLOCK)
      local held = above[parent] or {0, 0}
      above[parent] = {held[1] + sum[1], held[2] + sum[2]}
    end
    pending = above
  end
end

-- Number and bytes of what went with first <= offset <= last; the bytes only where no run reaches over an end.
local function gone_between(gone, first, last)
  local count, bytes, at, stop = 0, 0, first, last + 1
  if at >= stop or redis.call('EXISTS', gone) == 0 then return 0, 0 end
  local function add_runs(upto)
    local before = gone_run_upto(gone, at)
    if before and before.first < at and before.last >= at then count = count + math.min(before.last + 1, upto) - at end
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', gone, gone_whole(at), gone_whole(upto - 1))) do
      local run = gone_run(member)
      count, bytes = count + math.min(run.last + 1, upto) - run.first, bytes + run.bytes
    end
    at = upto
  end
  local function add_blocks(level, upto)
    if upto <= at then return end
    local size = GONE_BLOCK ^ level
    local low, high = gone_score(level, upto / size - 1), gone_score(level, at / size)
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', gone, low, high)) do
      local c, b = string.match(member, ':(%d+):(%d+)$')
      count, bytes = count + c, bytes + b
    end
    at = upto
  end
  local function align(offset, size) return math.ceil(offset / size) * size end
  if at % GONE_BLOCK ~= 0 then add_runs(math.min(stop, align(at, GONE_BLOCK))) end
  for level = 1, GONE_LEVELS do
    local size = GONE_BLOCK ^ level
    local upto = stop - stop % size
    if level < GONE_LEVELS then upto = math.min(upto, align(at, size * GONE_BLOCK)) end
    add_blocks(level, upto)
  end
  for level = GONE_LEVELS - 1, 1, -1 do add_blocks(level, stop - stop % GONE_BLOCK ^ level) end
  if at < stop then add_runs(stop) end
  return count, bytes
end

-- The first offset at or after the given one that did not go.
local function gone_next(gone, offset)
  local run = gone_run_upto(gone, offset)
  while run and run.last >= offset do
    offset = run.last + 1
    for level = GONE_LEVELS, 1, -1 do
      local size = GONE_BLOCK ^ level
      while offset % size == 0 do
        local score = gone_score(level, offset / size)
        local member = redis.call('ZRANGEBYSCORE', gone, score, score)[1]
        if not member or tonumber(string.match(member, ':(%d+):%d+$')) < size then break end
        offset = offset + size
      end
    end
    run = gone_run_upto(gone, offset)
  end
  return offset
end

-- One after the last offset from first on and below stop that did not go; first where all of them did.
local function gone_trim(gone, first, stop)
  local function all_went(from) return gone_between(gone, from, stop - 1) == stop - from end
  -- Mostly little went there, so the steps double before they halve.
  local high, step = stop, 1
  while high - step >= first and all_went(high - step) do high, step = high - step, step * 2 end
  local low = math.max(first, high - step)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if all_went(middle) then high = middle else low = middle + 1 end
  end
  return high
end

-- Forgets what went below an offset, at most a slice of runs; true when nothing of it is left. A run that reaches over it stays.
local function gone_forget(gone, floor, slice)
  local across = gone_run_upto(gone, floor)
  if across and across.last >= floor then floor = across.first end
  local over = redis.call('ZRANGEBYSCORE', gone, 0, '(' .. gone_whole(floor), 'WITHSCORES', 'LIMIT', slice, 1)[2]
  local upto = tonumber(over or floor)
  redis.call('ZREMRANGEBYSCORE', gone, 0, '(' .. gone_whole(upto))
  for level = 1, GONE_LEVELS do
    -- A block that begins below the floor is counted by its runs from now on.
    local highest = math.ceil(upto / GONE_BLOCK ^ level) - 1
    redis.call('ZREMRANGEBYSCORE', gone, gone_score(level, highest), gone_score(level, 0))
  end
  return not over
end

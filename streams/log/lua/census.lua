-- Tells what went from between others where that is not what somebody knows of it, and what came since; changes nothing.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- ARGV[1] first: the first offset that somebody knows, a multiple of 65536
-- ARGV[2] last: the last one
-- ARGV[3] blocks: how many are known to have gone of each 256 offsets from there on, two bytes each, the high one first
-- ARGV[4] sums: the same of each 65536, four bytes each
-- returns: the packed counters, 1 where there is more to tell, up to which offset was looked at; how many messages came,
--   how many blocks of 256 are told; of each message its offset, size, and key or nothing; the numbers of the blocks; all runs
--   in them
-- errors: OKMQ_NO_STREAM
-- flags: no-writes
-- include: clock, state, gone, floor
local log, meta, gone, first, last, blocks, sums = KEYS[1], KEYS[2], KEYS[3], tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local MOST_SUMS, MOST_RUNS, MOST_CAME, WIDE = 8, 1500, 200, GONE_BLOCK * GONE_BLOCK

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local is_more, came, told, runs, looked = 0, {}, {}, {}, 0
if last < state.last then
  local page = math.max(1, math.min(MOST_CAME, math.floor(4194304 / math.max(1, state.widest))))
  local found = redis.call('XRANGE', log, string.format('%.0f', last + 1), '+', 'COUNT', page)
  for _, entry in ipairs(found) do
    local fields = entry[2]
    came[#came + 1], came[#came + 2] = entry_offset(entry), #fields[4]
    came[#came + 1] = fields[7] == 'k' and fields[8] or ''
  end
  last = #found == page and entry_offset(found[page]) or state.last
  if last < state.last then is_more = 1 end
end

-- What stands in the store for the blocks of a level from one up to another, by block.
local function counted(level, from, upto)
  local counts = {}
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', gone, gone_score(level, upto), gone_score(level, from))) do
    local block, count = string.match(member, '^%d+:(%d+):(%d+):')
    counts[tonumber(block)] = tonumber(count)
  end
  return counts
end

local function known(text, width, at)
  local value = 0
  for n = at * width + 1, (at + 1) * width do value = value * 256 + (string.byte(text, n) or 0) end
  return value
end

local function look_into(wide)
  local from = math.max(wide * GONE_BLOCK, math.floor(state.floor / GONE_BLOCK))
  local upto = math.min((wide + 1) * GONE_BLOCK - 1, math.floor(last / GONE_BLOCK))
  local counts = counted(1, from, upto)
  for block = from, upto do
    -- Of a block that begins below the floor the sum may be forgotten.
    if block * GONE_BLOCK < state.floor or (counts[block] or 0) ~= known(blocks, 2, block - first / GONE_BLOCK) then
      if #runs > MOST_RUNS then return false end
      local start = block * GONE_BLOCK
      told[#told + 1] = block
      for _, member in ipairs(redis.call('ZRANGEBYSCORE', gone, gone_whole(start), gone_whole(start + GONE_BLOCK - 1))) do
        runs[#runs + 1] = member
      end
    end
  end
  return true
end

local from, upto = math.floor(math.max(state.floor, first) / WIDE), math.floor(last / WIDE)
local counts = counted(2, from, upto)
for wide = from, upto do
  if wide * WIDE < state.floor or (counts[wide] or 0) ~= known(sums, 4, wide - first / WIDE) then
    looked = looked + 1
    if looked > MOST_SUMS or not look_into(wide) then
      is_more = 1
      break
    end
  end
end
local answer = {state.packed or '', is_more, last, #came / 3, #told}
for _, values in ipairs({came, told, runs}) do
  for n = 1, #values do answer[#answer + 1] = values[n] end
end
return answer

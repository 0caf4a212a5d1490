-- Says what would go by interest where no group has a filter, by arithmetic; changes nothing.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4...] of_groups: of each group its hash, pending, parked, ready and runs
-- ARGV[1] first: the floor that other limits leave
-- ARGV[2] most: messages out at one group, at most, that are looked at one by one
-- ARGV[3] supposed: the number of the group that is asked about as if it were done with more; 0: none
-- ARGV[4] moved: up to where all counts as delivered to it then, with nothing out; -1: it is not moved
-- ARGV[5...] answered: offsets that it would have answered
-- returns: messages and bytes that would go, the first offset that would remain, time of the message there or 0,
--   where a group is supposed also messages and bytes of them that go as it is; nothing where more are out
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP
-- flags: no-writes
-- include: clock, state, gone, floor, group, runs
local log, meta, gone = KEYS[1], KEYS[2], KEYS[3]
local first, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local supposed, moved, answered = tonumber(ARGV[3]), tonumber(ARGV[4]), {}
for n = 5, #ARGV do answered[ARGV[n]] = true end

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local groups = {}
for at = 4, #KEYS, 5 do
  local group = group_load(KEYS[at])
  if not group then return redis.error_reply('OKMQ_NO_GROUP') end
  groups[#groups + 1] = {delivered = group.delivered, at = at}
end
first = gone_next(gone, math.max(first, state.floor))

-- What a group has out in one of its sets, or in its runs, up to an offset; more than the most, where more is.
local function out_in(key, is_runs, stop)
  if not is_runs then return redis.call('ZRANGEBYSCORE', key, first, stop, 'LIMIT', 0, most + 1) end
  local out = {}
  for _, each in ipairs(runs_list({runs = key}, first, most + 1)) do
    if each[1] <= stop then out[#out + 1] = string.format('%.0f', each[1]) end
  end
  return out
end

-- Messages and bytes that every group is done with, and the first that remains. One group counts as it is supposed to be,
-- or, where all are asked about as they really are, both as that and as it is.
local function settled(is_really)
  local stop, doing = state.last, is_really and 0 or supposed
  for number, group in ipairs(groups) do
    local is_moved = number == supposed and moved >= 0
    if is_moved then stop = math.min(stop, moved) end
    if is_really or not is_moved then stop = math.min(stop, group.delivered) end
  end
  if first > stop then return 0, 0, first end
  local remains = gone_next(gone, stop + 1)
  local count, size = gone_between(gone, first, remains - 1)
  local messages = remains - first - count
  local bytes = bytes_before(log, state, remains) - bytes_before(log, state, first) - size
  local seen = {}
  for number, group in ipairs(groups) do
    for waiting = group.at + 1, group.at + 4 do
      local out = {}
      if number ~= doing or moved < 0 then out = out_in(KEYS[waiting], waiting == group.at + 4, stop) end
      if #out > most then return end
      for _, offset in ipairs(out) do
        if not seen[offset] and not (number == doing and answered[offset]) then
          local entry = redis.call('XRANGE', log, offset, offset)[1]
          if entry and not gone_has(gone, tonumber(offset)) then
            messages, bytes, remains = messages - 1, bytes - #entry[2][4], math.min(remains, tonumber(offset))
          end
          seen[offset] = true
        end
      end
    end
  end
  return messages, bytes, remains
end

local messages, bytes, remains = settled(false)
if not messages then return {} end
local entry = redis.call('XRANGE', log, remains, remains)[1]
local told = {messages, bytes, remains, entry and entry_ms(entry) or 0}
if supposed > 0 then
  local already, already_bytes = settled(true)
  if not already then return {} end
  told[5], told[6] = already, already_bytes
end
return told

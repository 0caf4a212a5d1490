-- Counts what a group has not acknowledged in a range; changes nothing.
-- KEYS[1] meta
-- KEYS[2] gone
-- KEYS[3] group
-- KEYS[4] pending
-- KEYS[5] parked
-- KEYS[6] runs
-- ARGV[1] first: the first offset, not below the floor
-- ARGV[2] stop: the offset after the last
-- returns: delivered, visible messages of any key not delivered, messages in flight or waiting for their turn
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP
-- flags: no-writes
-- include: clock, state, gone, floor, group, runs
local meta, gone, group_key, pending, parked, runs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local first, stop = tonumber(ARGV[1]), tonumber(ARGV[2])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
local from, ahead, flying = math.max(first, group.delivered + 1), 0, 0
if from < stop then ahead = stop - from - gone_between(gone, from, stop - 1) end
if first < stop then
  for _, key in ipairs({pending, parked}) do
    for _, offset in ipairs(redis.call('ZRANGEBYSCORE', key, first, '(' .. ARGV[2])) do
      if not gone_has(gone, tonumber(offset)) then flying = flying + 1 end
    end
  end
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', runs, first, '+inf')) do
    local run = runs_read(member)
    local from, last = math.max(first, run.first), math.min(run.last, stop - 1)
    if from > last then break end
    flying = flying + last - from + 1 - gone_between(gone, from, last)
  end
end
return {group.delivered, ahead, flying}

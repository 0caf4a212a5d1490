-- Says what would go by interest where no group has a filter, by arithmetic; changes nothing.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4...] of_groups: of each group its hash, pending, parked, ready and runs
-- ARGV[1] first: the floor that other limits leave
-- ARGV[2] most: messages out at one group, at most, that are looked at one by one
-- returns: messages and bytes that would go, the first offset that would remain, time of the message there or 0;
--   nothing where more are out
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP
-- flags: no-writes
-- include: state, gone, floor, group, runs
local log, meta, gone = KEYS[1], KEYS[2], KEYS[3]
local first, most = tonumber(ARGV[1]), tonumber(ARGV[2])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local stop = state.last
for at = 4, #KEYS, 5 do
  local group = group_load(KEYS[at])
  if not group then return redis.error_reply('OKMQ_NO_GROUP') end
  stop = math.min(stop, group.delivered)
end
first = gone_next(gone, math.max(first, state.floor))
local remains, messages, bytes = first, 0, 0
if first <= stop then
  remains = gone_next(gone, stop + 1)
  local count, size = gone_between(gone, first, remains - 1)
  messages = remains - first - count
  bytes = bytes_before(log, state, remains) - bytes_before(log, state, first) - size
  local seen = {}
  for at = 4, #KEYS, 5 do
    for waiting = at + 1, at + 4 do
      local out = {}
      if waiting < at + 4 then
        out = redis.call('ZRANGEBYSCORE', KEYS[waiting], first, stop, 'LIMIT', 0, most + 1)
      else
        for _, each in ipairs(runs_list({runs = KEYS[waiting]}, first, most + 1)) do
          if each[1] <= stop then out[#out + 1] = string.format('%.0f', each[1]) end
        end
      end
      if #out > most then return {} end
      for _, offset in ipairs(out) do
        local entry = not seen[offset] and redis.call('XRANGE', log, offset, offset)[1]
        if entry and not gone_has(gone, tonumber(offset)) then
          messages, bytes, remains = messages - 1, bytes - #entry[2][4], math.min(remains, tonumber(offset))
        end
        seen[offset] = true
      end
    end
  end
end
local entry = redis.call('XRANGE', log, remains, remains)[1]
return {messages, bytes, remains, entry and entry_ms(entry) or 0}

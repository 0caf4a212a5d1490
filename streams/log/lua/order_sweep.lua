-- Takes messages that were removed while they waited for their key out of the count, a slice of runs at a time.
-- KEYS[1] meta
-- KEYS[2] gone
-- KEYS[3] group
-- KEYS[4] parked
-- ARGV[1] from: offset
-- ARGV[2] removals: as the first slice found them, or empty
-- returns: how many there were, where to go on or 0, removals
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP
-- flags: allow-oom
-- include: clock, state, gone, floor, group
local meta, gone, group_key, parked = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local from, removals, SLICE = tonumber(ARGV[1]), tonumber(ARGV[2]), 500

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
removals = removals or state.removals
local first, count, found = redis.call('ZRANGE', parked, 0, 0)[1], 0, {}
if first then
  -- A run may begin before what waits, in the same block.
  local start = math.max(from, tonumber(first) - tonumber(first) % GONE_BLOCK)
  found = redis.call('ZRANGEBYSCORE', gone, start, group.delivered, 'LIMIT', 0, SLICE)
  for _, member in ipairs(found) do
    local run = gone_run(member)
    count = count + redis.call('ZREMRANGEBYSCORE', parked, run.first, run.last)
  end
end
group.missed = group.missed + count
local following = #found == SLICE and gone_run(found[SLICE]).last + 1 or 0
if following == 0 then group.swept = removals end
group_save(group_key, group)
return {count, following, removals}

-- Takes what the filter of a group does not let through any more out of what waits for its key, a slice at a time.
-- KEYS[1] meta
-- KEYS[2] log
-- KEYS[3] gone
-- KEYS[4] group
-- KEYS[5] parked
-- KEYS[6] parked_aside
-- ARGV[1] from: offset
-- ARGV[2] slice: most offsets in one call
-- returns: where to go on, or 0 when done
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP
-- flags: allow-oom
-- include: clock, state, gone, floor, group
local meta, log, gone, group_key, parked, parked_aside = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local from, slice = ARGV[1], tonumber(ARGV[2])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
slice = math.max(1, math.min(slice, math.floor(4194304 / math.max(1, state.widest))))
-- What went while it waited was wanted then, and is counted as lost.
local start = string.format('%.0f', math.max(tonumber(from), state.floor))
local offsets = redis.call('ZRANGEBYSCORE', parked, start, '+inf', 'LIMIT', 0, slice)
for _, offset in ipairs(offsets) do
  local entry = redis.call('XRANGE', log, offset, offset)[1]
  if entry and not group_wants(group, entry) and entry_visible(gone, state, entry) then
    redis.call('ZREM', parked, offset)
    redis.call('ZREM', parked_aside, offset)
  end
end
return #offsets == slice and offsets[#offsets] + 1 or 0

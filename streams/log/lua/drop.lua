-- Physically removes a slice of what is below the floor: at once what a person purged, and what the history has
-- or need not have.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] by_key
-- ARGV[1] hold_ms: how long the history of an archived stream is waited for
-- ARGV[2] slice: most offsets to remove in one call
-- returns: entries removed, 1 when done, entries removed that the history did not get in time
-- errors: OKMQ_NO_STREAM
-- include: state
local log, meta, by_key = KEYS[1], KEYS[2], KEYS[3]
local hold_ms, slice = tonumber(ARGV[1]), tonumber(ARGV[2])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local first = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
local from = first and tonumber(string.match(first[1], '^(%d+)')) or state.floor
local stop, free = state.floor, math.max(state.archived, state.purged) + 1
if state.archive == 1 and from < stop and free < stop then
  -- The clock of the wait starts when something has to wait, and anew when all that waited is gone.
  local now = state_now(state)
  if state.held_since == 0 then
    state.held_since = now
    stop = free
  elseif now - state.held_since < hold_ms then
    stop = free
  end
else
  state.held_since = 0
end
state_save(meta, state)
if from >= stop then return {0, 1, 0} end
local upto = math.min(stop, from + slice)
if redis.call('HLEN', by_key) > 0 then
  -- A key is forgotten with its last message; entries are few here, since their bodies are read.
  upto = math.min(upto, from + math.max(1, math.min(200, math.floor(4194304 / math.max(1, state.widest)))))
  local keys, offsets = {}, {}
  for _, entry in ipairs(redis.call('XRANGE', log, from, upto - 1)) do
    if entry[2][7] == 'k' then
      keys[#keys + 1] = entry[2][8]
      offsets[#offsets + 1] = string.match(entry[1], '^(%d+)')
    end
  end
  if #keys > 0 then
    for n, held in ipairs(redis.call('HMGET', by_key, unpack(keys))) do
      if held == offsets[n] then redis.call('HDEL', by_key, keys[n]) end
    end
  end
end
local removed = redis.call('XTRIM', log, 'MINID', string.format('%.0f', upto))
local missed = state.archive == 1 and math.max(0, upto - math.max(from, free)) or 0
return {removed, upto >= stop and 1 or 0, missed}

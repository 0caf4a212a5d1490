-- Says at which offsets dead letters have a key, or those that were replayed and are not acknowledged; a slice of them.
-- KEYS[1] meta
-- KEYS[2] dead
-- KEYS[3] replayed
-- ARGV[1] key
-- ARGV[2] place: dead or replayed
-- ARGV[3] from: where to go on, 0 at first
-- returns: where to go on, or 0 at the end; the offsets
-- errors: OKMQ_NO_STREAM
-- flags: no-writes
-- include: clock, state
local meta, dead, replayed, key, place, from = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
-- Their bodies are read here, so there are few of them where they may be large.
local page = math.max(1, math.min(1000, math.floor(4194304 / math.max(1, state.widest))))
local found, offsets, following = nil, {}, '0'
local function look(letter)
  local read = cmsgpack.unpack(letter)
  if read.key == key then offsets[#offsets + 1] = read.offset end
end
if place == 'replayed' then
  local scanned = redis.call('HSCAN', replayed, from, 'COUNT', page)
  following, found = scanned[1], scanned[2]
  for n = 2, #found, 2 do look(found[n]) end
else
  found = redis.call('ZRANGEBYSCORE', dead, from, '+inf', 'WITHSCORES', 'LIMIT', 0, page)
  for n = 1, #found, 2 do look(found[n]) end
  if #found == 2 * page then following = string.format('%.0f', tonumber(found[#found]) + 1) end
end
return {following, offsets}

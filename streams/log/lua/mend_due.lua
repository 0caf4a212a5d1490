-- Lets what is out and has no time to come again come now.
-- KEYS[1] pending
-- KEYS[2] runs
-- KEYS[3] due
-- KEYS[4] turns
-- KEYS[5] ready
-- ARGV[1] steady: the store's steady clock in ms
-- returns: how many there were
local pending, runs, due, turns, ready, steady = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], ARGV[1]

-- What waits for the turn of its key, or whose turn has come, needs no time.
local function waits(offset)
  local key = string.match(redis.call('HGET', turns, offset) or '', '^%d*:(.*)$')
  local head = key and string.match(redis.call('HGET', turns, 'k' .. key) or '', '^%d+')
  return (head and head ~= offset) or redis.call('ZSCORE', ready, offset)
end

local mended = 0
for _, key in ipairs({pending, runs}) do
  local out = redis.call('ZRANGE', key, 0, -1)
  for first = 1, #out, 1000 do
    local last = math.min(first + 999, #out)
    local times = redis.call('ZMSCORE', due, unpack(out, first, last))
    for n = first, last do
      if not times[n - first + 1] and not waits(out[n]) then
        redis.call('ZADD', due, steady, out[n])
        mended = mended + 1
      end
    end
  end
end
return mended

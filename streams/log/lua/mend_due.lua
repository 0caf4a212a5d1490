-- Lets what is out and has no time to come again come now.
-- KEYS[1] pending
-- KEYS[2] runs
-- KEYS[3] due
-- ARGV[1] steady: the store's steady clock in ms
-- returns: how many there were
local pending, runs, due, steady = KEYS[1], KEYS[2], KEYS[3], ARGV[1]

local mended = 0
for _, key in ipairs({pending, runs}) do
  local out = redis.call('ZRANGE', key, 0, -1)
  for first = 1, #out, 1000 do
    local last = math.min(first + 999, #out)
    local times = redis.call('ZMSCORE', due, unpack(out, first, last))
    for n = first, last do
      if not times[n - first + 1] then
        redis.call('ZADD', due, steady, out[n])
        mended = mended + 1
      end
    end
  end
end
return mended

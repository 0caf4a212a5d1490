-- Lets a request through or not: the generic cell rate algorithm, exact over all processes, without a list of requests.
-- KEYS[1] rate
-- ARGV[1] interval_us: microseconds that one request is worth
-- ARGV[2] burst: requests that may come at once after a rest
-- returns: allowed (1 or 0), requests left at this moment, microseconds until one is let through, until all are
-- flags: allow-oom
local rate = KEYS[1]
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])

-- A lost count costs at most one burst: it is kept out of the append-only file, whose flush would cost every request.
redis.set_repl(redis.REPL_NONE)
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local whole = interval * burst
-- When everything will be let through again; never further off than a whole burst, whatever the clock or the limit did.
local held = tonumber(redis.call('GET', rate) or 0)
local full_at = math.min(math.max(held, now), now + whole)

local after = full_at + interval
local early = after - whole - now
if early > 0 then
  -- Written down: who is refused is not to wait for more than the limit of now asks for.
  if held > full_at then redis.call('SET', rate, string.format('%.3f', full_at), 'PX', math.ceil(whole / 1000) + 1) end
  return {0, 0, math.ceil(early), math.ceil(full_at - now)}
end
redis.call('SET', rate, string.format('%.3f', after), 'PX', math.ceil((after - now) / 1000) + 1)
return {1, math.floor((whole - (after - now)) / interval + 0.000001), 0, math.ceil(after - now)}

-- The two places of what is physically removed. unseen_from: the first offset that the history has not seen and should.
-- Needs gone, floor and removal.

local DROP_HIDDEN_SLICE = 100
local DROP_TIMED_SLICE = 500

-- Forgets the keys whose last message is among these entries, and what the index knows of them.
local function drop_keys(stream, entries)
  local keys, offsets, last = {}, {}, {}
  for _, entry in ipairs(entries) do
    local fields = entry[2]
    if fields[7] == 'k' then
      keys[#keys + 1] = fields[8]
      offsets[#offsets + 1] = string.match(entry[1], '^(%d+)')
    end
  end
  if #keys == 0 then return end
  if redis.call('EXISTS', stream.latest) == 1 then
    local members = {}
    for n, key in ipairs(keys) do members[n] = latest_member(key, tonumber(offsets[n])) end
    redis.call('ZREM', stream.latest, unpack(members))
  end
  for n, held in ipairs(redis.call('HMGET', stream.by_key, unpack(keys))) do
    if held == offsets[n] then last[#last + 1] = keys[n] end
  end
  if #last > 0 then redis.call('HDEL', stream.by_key, unpack(last)) end
end

-- Removes entries below an offset, a slice of them; returns how many, how many unseen, and whether all are gone.
local function drop_below(stream, state, from, stop, slice, unseen_from)
  if from >= stop then return 0, 0, true end
  local upto = math.min(stop, from + slice)
  if redis.call('EXISTS', stream.expiry) == 1 then
    -- What went before its time has none to wait for.
    upto = math.min(upto, from + DROP_TIMED_SLICE)
    local offsets = {}
    for offset = from, upto - 1 do offsets[#offsets + 1] = string.format('%.0f', offset) end
    redis.call('ZREM', stream.expiry, unpack(offsets))
  end
  if redis.call('EXISTS', stream.by_key) == 1 then
    -- Entries are few here, since their bodies are read.
    upto = math.min(upto, from + math.max(1, math.min(200, math.floor(4194304 / math.max(1, state.widest)))))
    drop_keys(stream, redis.call('XRANGE', stream.log, from, upto - 1))
  end
  local removed = redis.call('XTRIM', stream.log, 'MINID', string.format('%.0f', upto))
  if state.hidden == 1 then redis.call('ZREMRANGEBYSCORE', stream.hidden, '-inf', string.format('(%.0f', upto)) end
  return removed, math.max(0, math.min(removed, upto - unseen_from)), upto >= stop
end

-- Removes hidden entries below an offset, a slice of them; returns the same.
local function drop_hidden(stream, stop, unseen_from)
  local loose = redis.call('ZRANGEBYSCORE', stream.hidden, '-inf', string.format('(%.0f', stop), 'LIMIT', 0, DROP_HIDDEN_SLICE)
  local removed, missed = 0, 0
  for _, offset in ipairs(loose) do
    local entry = redis.call('XRANGE', stream.log, offset, offset)[1]
    if entry then
      drop_keys(stream, {entry})
      redis.call('XDEL', stream.log, entry[1])
      removed = removed + 1
      if tonumber(offset) >= unseen_from then missed = missed + 1 end
    end
  end
  if #loose > 0 then redis.call('ZREM', stream.hidden, unpack(loose)) end
  return removed, missed, #loose < DROP_HIDDEN_SLICE
end

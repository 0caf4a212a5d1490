-- Puts right what a group has out: what would never come again comes now, its position is not below what it has out, and its
-- counts are those of what is there.
-- KEYS[1] meta
-- KEYS[2] group
-- KEYS[3] pending
-- KEYS[4] due
-- KEYS[5] leases
-- KEYS[6] runs
-- KEYS[7] turns
-- KEYS[8] ready
-- KEYS[9] replayed
-- KEYS[10] shelved
-- KEYS[11] members
-- ARGV[1] steady: the store's steady clock in ms
-- ARGV[2] tally: 1 when who has what has to be counted in any case
-- returns: how much was put right
-- errors: OKMQ_NO_STREAM
-- include: clock, state, gone, floor, members, group, runs, losses, earlier
local meta, group_key, pending, due, leases, runs = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local turns, ready, replayed, shelved, members = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local steady, tally = ARGV[1], ARGV[2]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local mended = 0

-- What waits for the turn of its key, or whose turn has come, needs no time.
local function waits(offset)
  local key = string.match(redis.call('HGET', turns, offset) or '', '^%d*:(.*)$')
  local head = key and string.match(redis.call('HGET', turns, 'k' .. key) or '', '^%d+')
  return (head and head ~= offset) or redis.call('ZSCORE', ready, offset)
end

-- What has a lease and a time, or waits, is out; what is due as a whole is a run.
for _, offset in ipairs(redis.call('HKEYS', leases)) do
  if not redis.call('ZSCORE', pending, offset) and not redis.call('ZSCORE', shelved, offset)
    and (redis.call('ZSCORE', due, offset) or waits(offset)) then
    redis.call('ZADD', pending, offset, offset)
    mended = mended + 1
  end
end
for _, member in ipairs(redis.call('ZRANGE', due, 0, -1)) do
  local run = runs_read(member)
  if run and not redis.call('ZSCORE', runs, member) then
    redis.call('ZADD', runs, string.format('%.0f', run.last), member)
    mended = mended + 1
  end
end

-- Nobody knows whose it was, or how often it was delivered: once at least.
for _, offset in ipairs(redis.call('ZRANGE', pending, 0, -1)) do
  if redis.call('HSETNX', leases, offset, string.format('1:0:%.0f:', state_now(state))) == 1 then
    if not waits(offset) then redis.call('ZADD', due, steady, offset) end
    mended = mended + 1
  end
end

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

local group = group_load(group_key, members)
if not group then return mended end
local in_runs, highest = 0, 0
for _, member in ipairs(redis.call('ZRANGE', runs, 0, -1)) do
  local run = runs_read(member)
  in_runs, highest = in_runs + run.last - run.first + 1, math.max(highest, run.last)
end
-- A dead letter that came back may lie above the position that a seek went to.
local at = -1
repeat
  local offset = redis.call('ZRANGE', pending, at, at)[1]
  at = at - 1
  if offset and redis.call('HEXISTS', replayed, offset) == 0 then highest, offset = math.max(highest, tonumber(offset)), nil end
until not offset
group.runs, group.in_runs = redis.call('ZCARD', runs), in_runs
group.delivered = math.min(math.max(group.delivered, highest), state.last)
local most = math.max(0, group.sequence - group.redelivered - group_out(group, pending))
if group.acked > group.sequence then group.acked = most end
if mended > 0 or tally == '1' then
  members_release(members)
  group.tallied = nil
  earlier_tally({runs = runs, pending = pending, leases = leases}, group)
end
local before = group.packed
group_save(group_key, group)
return mended + (group.packed ~= before and 1 or 0)

-- Goes on with what begins when a group is to take turns by key, or to take none any more: a slice of it. Lining up puts
-- what is in flight in the lists of its keys, and behind that what waits. Letting go lets everything that has no time, since
-- it waits for its turn, come again at once.
-- KEYS[1] log
-- KEYS[2] group
-- KEYS[3] pending
-- KEYS[4] turns
-- KEYS[5] replayed
-- KEYS[6] runs
-- KEYS[7] due
-- KEYS[8] leases
-- KEYS[9] parked
-- KEYS[10] ready
-- KEYS[11] parked_aside
-- ARGV[1] mode: that goes on; anything else begins
-- ARGV[2] waiting: 1 for what waits and was never out, 0 for what is in flight
-- ARGV[3] from: offset
-- ARGV[4] slice: most offsets in one call
-- returns: mode, for what to go on and from where; nothing when done
-- errors: OKMQ_NO_GROUP
-- include: clock, state, gone, floor, group, runs, order
local log, group_key, pending, turns, replayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local runs, due, leases, parked, ready = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local mode, waiting, from, slice = tonumber(ARGV[1]), ARGV[2] == '1', ARGV[3], tonumber(ARGV[4])
local keys = {runs = runs, pending = pending, due = due, leases = leases, parked = parked, ready = ready,
  parked_aside = KEYS[11]}

local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
local lines_up = group.ordered == TURNS.lining_up
if not lines_up and group.ordered ~= TURNS.letting_go then return {} end
if mode ~= group.ordered then mode, waiting, from = group.ordered, false, '1' end

-- Puts those of these that have a key and no place yet in the lists of their keys.
local function line_up(offsets)
  local keyed, names, heads, behind = {}, {}, {}, {}
  for _, offset in ipairs(offsets) do
    -- Also one that is over takes its turn until that is counted.
    local entry = redis.call('HEXISTS', turns, offset) == 0
      and (redis.call('XRANGE', log, offset, offset)[1] or group_entry(log, nil, replayed, {floor = 1}, offset))
    if entry and entry[2][7] == 'k' then
      keyed[#keyed + 1], names[#names + 1] = offset, entry[2][8]
    elseif entry and waiting then
      heads[#heads + 1], heads[#heads + 2] = offset, offset
    end
  end
  local order = order_open(turns, names)
  for n, offset in ipairs(keyed) do
    local is_first = order_restore(order, keys, offset, names[n], not waiting)
    if waiting and is_first then heads[#heads + 1], heads[#heads + 2] = offset, offset end
    if waiting and not is_first then behind[#behind + 1] = offset end
  end
  order_write(order)
  if #behind > 0 then redis.call('ZREM', ready, unpack(behind)) end
  if #heads > 0 then redis.call('ZADD', ready, unpack(heads)) end
end

local function let_go(offsets)
  local untimed = {}
  for n, at in ipairs(#offsets > 0 and redis.call('ZMSCORE', due, unpack(offsets)) or {}) do
    if not at then untimed[#untimed + 1], untimed[#untimed + 2] = 0, offsets[n] end
  end
  if #untimed > 0 then
    redis.call('ZADD', due, unpack(untimed))
    group_look_again(group, 0)
  end
end

if lines_up and group.runs > 0 then
  local run = runs_from(keys, 0)
  runs_open(keys, group, run, run.first, math.min(run.last, run.first + slice - 1))
  group_save(group_key, group)
  return {mode, 0, tonumber(from)}
end
local offsets = redis.call('ZRANGEBYSCORE', waiting and parked or pending, from, '+inf', 'LIMIT', 0, slice)
if lines_up then line_up(offsets) else let_go(offsets) end
local following = {}
if #offsets == slice then
  following = {mode, waiting and 1 or 0, offsets[#offsets] + 1}
elseif lines_up and not waiting then
  following = {mode, 1, 1}
elseif lines_up then
  group.ordered = TURNS.on
else
  redis.call('UNLINK', turns, ready)
  group.ordered = redis.call('EXISTS', parked) == 1 and TURNS.loose or TURNS.off
end
group_save(group_key, group)
return following

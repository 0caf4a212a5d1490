-- Puts what is in flight in the lists of its keys, then what waits there already, a slice at a time; after the last one
-- the group takes turns by key.
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
-- ARGV[1] waiting: 1 for what came back and waits, 0 for what is in flight
-- ARGV[2] from: offset
-- ARGV[3] slice: most offsets in one call
-- returns: for what to go on and from where; nothing when done
-- errors: OKMQ_NO_GROUP
-- include: state, gone, floor, group, runs, order
local log, group_key, pending, turns, replayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local runs, due, leases, parked, ready = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local waiting, from, slice = ARGV[1] == '1', ARGV[2], tonumber(ARGV[3])
local keys = {runs = runs, pending = pending, due = due, leases = leases}

local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
if group.runs > 0 then
  local run = runs_from(keys, 0)
  runs_open(keys, group, run, run.first, math.min(run.last, run.first + slice - 1))
  group_save(group_key, group)
  return {0, tonumber(from)}
end
local offsets = redis.call('ZRANGEBYSCORE', waiting and parked or pending, from, '+inf', 'LIMIT', 0, slice)
local keyed, names, behind = {}, {}, {}
for _, offset in ipairs(offsets) do
  local entry = redis.call('HEXISTS', turns, offset) == 0 and group_entry(log, nil, replayed, {floor = 1}, 0, offset)
  if entry and entry[2][7] == 'k' then keyed[#keyed + 1], names[#names + 1] = offset, entry[2][8] end
end
local order = order_open(turns, names)
for n, offset in ipairs(keyed) do
  if not order_join(order, offset, names[n]) then behind[#behind + 1] = offset end
end
order_write(order)
if waiting and #behind > 0 then redis.call('ZREM', ready, unpack(behind)) end
if #offsets == slice then return {waiting and 1 or 0, offsets[#offsets] + 1} end
if not waiting then return {1, 1} end
group.ordered = 1
group_save(group_key, group)
return {}

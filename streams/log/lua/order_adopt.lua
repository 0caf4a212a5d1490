-- Puts what is in flight in the lists of its keys, a slice at a time; after the last one the group takes turns by key.
-- KEYS[1] log
-- KEYS[2] group
-- KEYS[3] pending
-- KEYS[4] turns
-- KEYS[5] replayed
-- KEYS[6] runs
-- KEYS[7] due
-- KEYS[8] leases
-- ARGV[1] from: offset
-- ARGV[2] slice: most offsets in one call
-- returns: where to go on, or 0 when done
-- errors: OKMQ_NO_GROUP
-- include: state, gone, floor, group, runs, order
local log, group_key, pending, turns, replayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local from, slice = ARGV[1], tonumber(ARGV[2])
local keys = {runs = KEYS[6], pending = pending, due = KEYS[7], leases = KEYS[8]}

local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
if group.runs > 0 then
  local run = runs_from(keys, 0)
  runs_open(keys, group, run, run.first, math.min(run.last, run.first + slice - 1))
  group_save(group_key, group)
  return tonumber(from)
end
local offsets, keyed, keys = redis.call('ZRANGEBYSCORE', pending, from, '+inf', 'LIMIT', 0, slice), {}, {}
for _, offset in ipairs(offsets) do
  local entry = redis.call('HEXISTS', turns, offset) == 0 and group_entry(log, nil, replayed, {floor = 1}, 0, offset)
  if entry and entry[2][7] == 'k' then keyed[#keyed + 1], keys[#keys + 1] = offset, entry[2][8] end
end
local order = order_open(turns, keys)
for n, offset in ipairs(keyed) do order_join(order, offset, keys[n]) end
order_write(order)
if #offsets == slice then return offsets[#offsets] + 1 end
group.ordered = 1
group_save(group_key, group)
return 0

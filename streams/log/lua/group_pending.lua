-- Says what a group has in flight, in offset order; looks at a slice of it in one call.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] group
-- KEYS[5] pending
-- KEYS[6] due
-- KEYS[7] leases
-- KEYS[8] replayed
-- KEYS[9] runs
-- ARGV[1] start: the first offset
-- ARGV[2] limit: most rows
-- ARGV[3] slice: most offsets looked at
-- ARGV[4] least: deliveries
-- ARGV[5] before: delivered at this unix ms or earlier
-- ARGV[6] is_named: 1 for those of one consumer only
-- ARGV[7] consumer
-- returns: offset to go on from or 0, generation, rows of offset, deliveries, delivered ms, consumer, due (steady ms),
--   sequence of the lease, id, key (may be empty), published ms; what went meanwhile is passed over
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP
-- flags: no-writes
-- include: clock, state, gone, floor, group, runs
local log, meta, gone, group_key, pending, due = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local leases, replayed, start, consumer = KEYS[7], KEYS[8], ARGV[1], ARGV[7]
local limit, slice, least, before = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local is_named = ARGV[6] == '1'

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
local rows = {}
local offsets = redis.call('ZRANGEBYSCORE', pending, start, '+inf', 'LIMIT', 0, slice)
local in_runs = {}
if group.runs > 0 then
  for _, each in ipairs(runs_list({runs = KEYS[9]}, tonumber(start), slice)) do
    local offset = string.format('%.0f', each[1])
    offsets[#offsets + 1], in_runs[offset] = offset, each[2]
  end
  table.sort(offsets, function(a, b) return tonumber(a) < tonumber(b) end)
end
for n = 1, math.min(#offsets, slice) do
  local offset = offsets[n]
  local run = in_runs[offset]
  local held = run and runs_lease(run, offset) or lease_read(leases, offset)
  if held and held.deliveries >= least and tonumber(held.at_ms) <= before
      and (not is_named or held.consumer == consumer) then
    if #rows >= limit then return {tonumber(offset), group.generation, rows} end
    local entry, id, key = group_entry(log, gone, replayed, state, offset), '', ''
    for f = 1, entry and #entry[2] or 0, 2 do
      if entry[2][f] == 'i' then id = entry[2][f + 1] elseif entry[2][f] == 'k' then key = entry[2][f + 1] end
    end
    if entry then
      local due_ms = tonumber(run and run.due or redis.call('ZSCORE', due, offset) or '0')
      rows[#rows + 1] = {tonumber(offset), held.deliveries, tonumber(held.at_ms), held.consumer, due_ms, tonumber(held.sequence),
        id, key, entry_ms(entry)}
    end
  end
end
local last = offsets[slice]
return {last and tonumber(last) + 1 or 0, group.generation, rows}

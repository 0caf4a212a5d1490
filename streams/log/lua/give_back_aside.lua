-- Gives a slice of what an undo brought back to one of the groups that were behind.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] removals
-- KEYS[5] group
-- KEYS[6] pending
-- KEYS[7] due
-- KEYS[8] leases
-- KEYS[9] turns
-- KEYS[10] parked
-- KEYS[11] ready
-- KEYS[12] parked_aside
-- KEYS[13] members
-- KEYS[14] shelved
-- ARGV[1] wake: channel
-- ARGV[2] number: of the removal
-- ARGV[3] name: of the group
-- ARGV[4] slice: most messages in one call
-- returns: 1 when the group has all of it, 2 when it has what was out, else 0
-- errors: OKMQ_NO_STREAM
-- include: clock, state, gone, floor, taken, members, group, order, removal, aside, aside_groups
local log, meta, gone, removals = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local reader = {key = KEYS[5], pending = KEYS[6], due = KEYS[7], leases = KEYS[8], turns = KEYS[9], parked = KEYS[10],
  ready = KEYS[11], parked_aside = KEYS[12], shelved = KEYS[14]}
local wake, field, name, slice = ARGV[1], 'back:' .. ARGV[2], ARGV[3], tonumber(ARGV[4])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local back, others, mine = cjson.decode(redis.call('HGET', removals, field) or '[]'), {}, nil
for _, each in ipairs(back) do
  if each[1] == name then mine = each else others[#others + 1] = each end
end
if not mine then return 1 end
local group, stop, done = group_load(reader.key, KEYS[13]), tonumber(mine[5]), true
if group and string.format('%.0f', group.generation) == mine[2] then
  reader.was = mine[7] or group.filter
  slice = math.max(1, math.min(slice, math.floor(4194304 / math.max(1, state.widest))))
  -- What was out comes first, in order, and once; not what another removal, or a limit since, keeps away.
  local out = tonumber(mine[3]) > 0 and redis.call('ZRANGEBYSCORE', reader.shelved, mine[3], stop, 'LIMIT', 0, slice) or {}
  for _, offset in ipairs(out) do
    local entry = redis.call('XRANGE', log, offset, offset)[1]
    if entry and tonumber(offset) >= state.floor and entry_visible(gone, state, entry) then
      aside_give_back(reader, group, stop, {entry})
    end
  end
  local had_out = mine[3] ~= '0'
  mine[3] = #out == slice and string.format('%.0f', tonumber(out[#out]) + 1) or '0'
  done = mine[3] == '0'
  if had_out and done then group.returning = math.max(0, group.returning - 1) end
  if done then
    local from = math.max(tonumber(mine[4]), state.floor)
    local found, entries = from <= stop and redis.call('XRANGE', log, from, stop, 'COUNT', slice) or {}, {}
    for _, entry in ipairs(found) do
      if entry_visible(gone, state, entry) then entries[#entries + 1] = entry end
      mine[4] = string.format('%.0f', entry_offset(entry) + 1)
    end
    reader.after = mine[8]
    aside_give_back(reader, group, tonumber(mine[6]), entries)
    mine[8] = reader.after
    done = #found < slice
  end
  group_save(reader.key, group)
end
if not done then others[#others + 1] = mine end
if #others > 0 then redis.call('HSET', removals, field, cjson.encode(others)) else redis.call('HDEL', removals, field) end
redis.call('PUBLISH', wake, 'due')
return done and 1 or mine[3] == '0' and 2 or 0

-- What went before a group was given it. Needs the includes state, gone, floor and group; keys are one table: log, gone,
-- went, parked.
-- A group without a filter counts by arithmetic: "missed" is what it passed by that had gone, less what had gone from
-- ahead of it where it began, so that missed and what is gone from ahead of it now make what it lost.
-- A filter needs the keys of what went. What goes from between leaves "<offset>/<number>:<key>" in the journal "went" by
-- the number of its removal, each time that it goes, and the group has counted it up to "seen"; below the floor the entries
-- are there until it has looked. The journal is there, with an empty member at 0, where a group has a filter.

local LOSSES_SLICE = 400

-- What went from ahead of a group and is not below the floor.
local function losses_ahead(keys, state, group)
  return (gone_between(keys.gone, math.max(group.delivered + 1, state.floor), state.last))
end

local function losses_wanted(group, key)
  return group_wants(group, {'', {'i', '', 'b', '', 'c', '', key and 'k' or 'h', key or ''}})
end

-- Counts a slice of the journal; true when the group has seen all of it.
local function losses_of_journal(keys, state, group)
  if group.seen == state.removals then return true end
  local after = string.format('(%.0f', group.seen)
  local found = redis.call('ZRANGEBYSCORE', keys.went, after, '+inf', 'WITHSCORES', 'LIMIT', 0, LOSSES_SLICE)
  for n = 1, #found, 2 do
    local offset, key = string.match(found[n], '^(%d+)/?%d*:(.*)$')
    if tonumber(offset) > group.delivered and losses_wanted(group, key) then group.missed = group.missed + 1 end
  end
  local is_all = #found < 2 * LOSSES_SLICE
  group.seen = is_all and state.removals or tonumber(found[#found])
  return is_all
end

-- Brings a group to the floor and up to date with what went; false when it has to be called again first.
local function losses_settle(keys, state, group)
  local below = state.floor - 1
  if #group.filter == 0 then
    if group.delivered < below then
      group.missed, group.delivered = group.missed + below - group.delivered, below
    end
    return true
  end
  if not losses_of_journal(keys, state, group) then return false end
  if group.delivered >= below then return true end
  local page = math.max(1, math.min(LOSSES_SLICE, math.floor(8388608 / math.max(1, state.widest))))
  local found = redis.call('XRANGE', keys.log, string.format('%.0f', group.delivered + 1), string.format('%.0f', below), 'COUNT', page)
  for _, entry in ipairs(found) do
    group.delivered = entry_offset(entry)
    if group_wants(group, entry) and not (state.hidden == 1 and gone_has(keys.gone, group.delivered)) then
      group.missed = group.missed + 1
    end
  end
  if #found < page then group.delivered = below end
  return #found < page
end

-- How much a settled group has lost.
local function losses_now(keys, state, group)
  local lost = group.missed
  if #group.filter == 0 then lost = lost + losses_ahead(keys, state, group) end
  if group.ordered > 0 then lost = lost + redis.call('ZCOUNT', keys.parked, '-inf', string.format('%.0f', state.floor - 1)) end
  return lost
end

-- Has a group count from here on, with the filter that it has now; before is the group as it was, settled, or nil.
local function losses_begin(keys, state, group, before)
  local has, had = #group.filter > 0, before and #before.filter > 0
  local ahead = losses_ahead(keys, state, group)
  if has then
    -- As long as the journal is there, removals are written to it.
    redis.call('ZADD', keys.went, 0, '')
    if not had or not before then group.seen = state.removals end
    if before and not had then group.missed = group.missed + ahead end
  elseif had or not before then
    group.missed = group.missed - ahead
  end
end

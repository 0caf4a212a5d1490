-- Deletes single messages, for a while only.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] latest
-- KEYS[5] aside
-- KEYS[6] removals
-- KEYS[7] groups
-- KEYS[8] went
-- KEYS[9...] of_groups: of each group its hash, parked and parked_aside
-- ARGV[1] denial: the setting that forbids it, deny_delete or deny_purge
-- ARGV[2] number: of the removal, as the first slice answered it, 0 before
-- ARGV[3] keep_ms: how long it can be undone
-- ARGV[4] facts: JSON, given back by who lists it
-- ARGV[5] count: of the groups
-- ARGV[6...] names: of the groups, in the order of their keys; then offsets, at most 1000
-- returns: messages and bytes that went, number of the removal or 0, the one that ended for it or 0, 1; 0 at the end when these
--   are not all groups
-- errors: OKMQ_NO_STREAM OKMQ_SEALED OKMQ_DENIED OKMQ_REMOVAL_OVER
-- flags: allow-oom
-- include: clock, state, gone, floor, taken, group, removal, aside
local log, meta, gone, aside, removals, groups = KEYS[1], KEYS[2], KEYS[3], KEYS[5], KEYS[6], KEYS[7]
local stream = {log = log, gone = gone, latest = KEYS[4], went = KEYS[8]}
local denial, number, keep_ms, facts, count = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local names = {}
for n = 6, 5 + count do names[n - 5] = ARGV[n] end

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
if state.sealed == 1 then return redis.error_reply('OKMQ_SEALED') end
if state[denial] == 1 then return redis.error_reply('OKMQ_DENIED ' .. denial) end
-- What nobody could bring back is not set aside; nor is anything added to what is being undone.
if number > 0 and (aside_is_closed(removals, number) or tonumber(redis.call('HGET', removals, number .. ':until') or 0) == 0) then
  return redis.error_reply('OKMQ_REMOVAL_OVER')
end
raise_floor(log, gone, state, floor_by_limits(log, gone, state))
local standing, positions = aside_positions(groups, names, KEYS, 9)
if not standing then return {0, 0, 0, 0, 0} end

local removal, first, last, ended, is_more = removal_begin(), state.last + 1, 0, 0, number > 0
for n = 6 + count, #ARGV do
  local offset = tonumber(ARGV[n])
  local entry = offset >= state.floor and redis.call('XRANGE', log, ARGV[n], ARGV[n])[1]
  if entry and entry_visible(gone, state, entry) then
    local size, key = #entry[2][4], entry[2][7] == 'k' and entry[2][8]
    state.hidden = 1
    if number == 0 then number, ended = aside_begin(removals, gone, state, keep_ms, facts, positions) end
    gone_add_run(gone, removal.sums, state.floor, offset, offset, size, GONE_ASIDE)
    removal_count(stream, state, removal, offset, size, key)
    first, last = math.min(first, offset), math.max(last, offset)
    -- As wide as the widest, so that those of a removal stand in order.
    redis.call('ZADD', aside, number, string.format('%016.0f', offset))
    for _, group in ipairs(standing) do
      if redis.call('ZSCORE', group.parked, offset) then redis.call('ZADD', group.parked_aside, offset, offset)
      else redis.call('ZREM', group.parked_aside, offset) end
    end
  end
end
if removal.messages > 0 then
  if is_more then aside_note_moved(removals, number, positions, first, last) end
  state.kept = state.kept > 0 and math.min(state.kept, first) or first
  local held = tonumber(redis.call('HGET', removals, number .. ':first'))
  redis.call('HSET', removals, number .. ':first', string.format('%.0f', math.min(held, first)))
  redis.call('HINCRBY', removals, number .. ':messages', removal.messages)
  redis.call('HINCRBY', removals, number .. ':bytes', removal.bytes)
end
removal_end(stream, state, removal)
state_by_hand(state, removal.messages, removal.bytes)
state_save(meta, state)
return {removal.messages, removal.bytes, number, ended, 1}

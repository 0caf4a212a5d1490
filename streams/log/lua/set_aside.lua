-- Raises the floor by hand, for a while only.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] removals
-- KEYS[5] groups
-- KEYS[6] scratch
-- KEYS[7...] of_groups: of each group its hash, parked and parked_aside
-- ARGV[1] mode: below (everything below an offset), keep (all but the newest)
-- ARGV[2] value: the offset, or how many to keep
-- ARGV[3] keep_ms: how long it can be undone
-- ARGV[4] facts: JSON, given back by who lists it
-- ARGV[5...] names: of the groups, in the order of their keys
-- returns: messages and bytes that went, number of the removal or 0, the one that ended for it or 0, 1; 0 at the end when these
--   are not all groups
-- errors: OKMQ_NO_STREAM OKMQ_SEALED OKMQ_DENIED
-- flags: allow-oom
-- include: clock, state, gone, floor, taken, group, removal, aside
local log, meta, gone, removals, groups, scratch = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local mode, value, keep_ms, facts, names = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], {}
for n = 5, #ARGV do names[n - 4] = ARGV[n] end

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
if state.sealed == 1 then return redis.error_reply('OKMQ_SEALED') end
if state.deny_purge == 1 then return redis.error_reply('OKMQ_DENIED deny_purge') end
raise_floor(log, gone, state, floor_by_limits(log, gone, state))
local standing, positions = aside_positions(groups, names, KEYS, 7)
if not standing then return {0, 0, 0, 0, 0} end

local first, cum, kept = state.floor, state.floor_cum, state.kept
local target = mode == 'below' and value or floor_keeping(gone, state, value)
local messages, bytes = raise_floor(log, gone, state, target)
local number, ended = 0, 0
if messages > 0 then
  state_by_hand(state, messages, bytes)
  state.kept = kept > 0 and math.min(kept, first) or first
  number, ended = aside_begin(removals, gone, state, keep_ms, facts, positions)
  for _, group in ipairs(standing) do aside_keep_parked(group, first, state.floor - 1, scratch) end
  redis.call('HSET', removals, number .. ':first', string.format('%.0f', first), number .. ':upto',
    string.format('%.0f', state.floor), number .. ':cum', string.format('%.0f', cum), number .. ':messages',
    string.format('%.0f', messages), number .. ':bytes', string.format('%.0f', bytes), number .. ':stop',
    string.format('%.0f', gone_trim(gone, first, state.floor)))
end
state_save(meta, state)
return {messages, bytes, number, ended, 1}

-- Takes away a page of what no group wants any more, where messages are kept by interest.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] hidden
-- KEYS[5] by_key
-- KEYS[6] latest
-- KEYS[7] went
-- KEYS[8] kept
-- KEYS[9] groups
-- KEYS[10...] of_groups: of each group its hash, pending, parked, ready and runs
-- ARGV[1] page: most messages in one call
-- ARGV[2...] names: of the groups, in the order of their keys
-- returns: messages and bytes that went, 1 when done; -1 when these are not all groups
-- errors: OKMQ_NO_STREAM
-- flags: allow-oom
-- include: clock, state, gone, floor, group, runs, losses, removal, interest
local meta, kept, groups = KEYS[2], KEYS[8], KEYS[9]
local stream = {log = KEYS[1], gone = KEYS[3], hidden = KEYS[4], by_key = KEYS[5], latest = KEYS[6], went = KEYS[7]}
local page = tonumber(ARGV[1])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
if state.retention ~= 'interest' then
  redis.call('UNLINK', kept)
  return {0, 0, 1}
end
local readers = {}
for n = 2, #ARGV do
  local at = 10 + (n - 2) * 5
  local group = redis.call('SISMEMBER', groups, ARGV[n]) == 1 and group_load(KEYS[at])
  if not group then return {0, 0, -1} end
  readers[#readers + 1] = {key = KEYS[at], group = group, waiting = {KEYS[at + 1], KEYS[at + 2], KEYS[at + 3]},
    runs = KEYS[at + 4]}
end
if redis.call('SCARD', groups) ~= #readers then return {0, 0, -1} end
if #readers == 0 then return {0, 0, 1} end

if state.passed == 0 then redis.call('UNLINK', kept) end
raise_floor(stream.log, stream.gone, state, floor_by_limits(stream.log, stream.gone, state))
page = math.max(1, math.min(page, math.floor(4194304 / math.max(1, state.widest))))
local removal = removal_begin()
local done = interest_of_kept(stream, state, removal, readers, kept, page)
if done then done = interest_of_new(stream, state, removal, readers, kept, page) end
removal_end(stream, state, removal)
for _, reader in ipairs(readers) do
  -- What a limit took before the group was given it is lost. One with a filter counts it before it goes physically.
  if #reader.group.filter == 0 then
    losses_settle(stream, state, reader.group)
    group_save(reader.key, reader.group)
  end
end
state_save(meta, state)
return {removal.messages, removal.bytes, done and 1 or 0}

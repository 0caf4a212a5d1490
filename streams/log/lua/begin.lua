-- Begins a memory stream, empty and above every offset that was ever handed out, with its groups at its start;
-- of one that is there it changes the settings.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] groups
-- KEYS[5...] group: one of each group
-- ARGV[1] life: as `life` answered, empty for a stream that was there
-- ARGV[2] last: up to it offsets may have been handed out
-- ARGV[3] ceiling: up to it offsets may be handed out now
-- ARGV[4] steady: the store's steady clock in ms
-- ARGV[5] values: how many of the following belong to the stream
-- ARGV[6...] pairs: field, value; an empty value takes the field away; then of each group its name, settings (packed) and
--   ordered
-- returns: 1 when it was begun, 0 when it was there, -1 when the server has lost what it held meanwhile
-- flags: allow-oom
-- include: clock, state, gone, floor, ids, group
local log, meta, gone, groups = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local life, last, ceiling = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local made_ms, values = tonumber(ARGV[4]), tonumber(ARGV[5])

local held = redis.call('HMGET', meta, 'name', 'life')
local new = not held[1]
if new and (life == '' or held[2] ~= life) then return -1 end
local before = floor_settle_before(log, gone, meta)
for n = 6, values + 5, 2 do
  if ARGV[n + 1] == '' then redis.call('HDEL', meta, ARGV[n]) else redis.call('HSET', meta, ARGV[n], ARGV[n + 1]) end
end
if before then ids_settings_changed(meta, before) end
if not new then
  for n = 5, #KEYS do -- those that a version before began have no such time
    local group = group_load(KEYS[n])
    if group and group.made_ms == 0 then
      group.made_ms = made_ms
      group_save(KEYS[n], group)
    end
  end
  return 0
end
local state = state_load(meta)
state.last, state.floor, state.committed, state.archived, state.ceiling = last, last + 1, last, last, ceiling
state_by_hand(state, last, 0) -- what it had is gone, and retention did not remove it
state_save(meta, state)
for n = 5, #KEYS do
  local at = values + 6 + 3 * (n - 5)
  redis.call('SADD', groups, ARGV[at])
  group_make(KEYS[n], ARGV[at + 1], last, tonumber(ARGV[at + 2]), state_now(state), made_ms)
end
return 1

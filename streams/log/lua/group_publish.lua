-- Makes a group, or changes the settings of one.
-- KEYS[1] meta
-- KEYS[2] group
-- KEYS[3] groups
-- KEYS[4] counted
-- KEYS[5] log
-- KEYS[6] gone
-- KEYS[7] went
-- KEYS[8] expiry
-- KEYS[9] pending
-- KEYS[10] leases
-- KEYS[11] runs
-- KEYS[12] members
-- KEYS[13] shelved
-- ARGV[1] wake: channel
-- ARGV[2] name: of the group
-- ARGV[3] delivered: where a new group starts: everything up to this offset counts as delivered
-- ARGV[4] steady: the store's steady clock in ms
-- ARGV[5] settings: packed (see streams.log.group_meta)
-- ARGV[6] ordered: 1 when messages of one key go out one at a time, else 0
-- returns: 1 when the group is new, 2 when it is to take turns from now on, or none any more (order_change), 3 to call
--   again once what is over has expired, else 0
-- errors: OKMQ_NO_STREAM
-- flags: allow-oom
-- include: clock, state, gone, floor, members, group, runs, losses, earlier
local meta, group_key, groups, counted = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local expiry, members = KEYS[8], KEYS[12]
local keys = {log = KEYS[5], gone = KEYS[6], went = KEYS[7], pending = KEYS[9], leases = KEYS[10],
  runs = KEYS[11], shelved = KEYS[13]}
local wake, name, delivered, made_ms = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local settings, ordered = ARGV[5], tonumber(ARGV[6])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local now = state_now(state)
floor_settle(keys.log, keys.gone, meta, state)
earlier_adopt(keys, state, group_key)
local held = group_load(group_key, members)
-- What has gone before a group begins is nothing that it lost.
if not held and redis.call('ZCOUNT', expiry, '-inf', steady_ms()) > 0 then return 3 end
redis.call('SADD', groups, name)
if not held then
  group_make(group_key, settings, math.max(delivered, state.floor - 1), ordered, now, made_ms)
else
  if held.made_ms == 0 then held.made_ms = made_ms end -- of a version that did not note it
  earlier_tally(keys, held)
  earlier_remember(keys)
  local is_settled = losses_settle(keys, state, held)
  group_save(group_key, held)
  if not is_settled then return 3 end
  redis.call('HSET', group_key, 'settings', settings)
end
local group, before = group_load(group_key), held and held.ordered
losses_begin(keys, state, group, held)
-- What was counted for another filter is worth nothing.
if held and table.concat(held.filter, '\n') ~= table.concat(group.filter, '\n') then redis.call('UNLINK', counted) end
-- With another limit others of those in flight may have been delivered too often.
group.retired_ms = -1
if held and ordered == 1 and before ~= TURNS.on then group.ordered = TURNS.lining_up end
if held and ordered == 0 and before ~= TURNS.off and before ~= TURNS.loose then group.ordered = TURNS.letting_go end
group_save(group_key, group)
if not held then return 1 end
redis.call('PUBLISH', wake, 'group')
return (group.ordered == TURNS.lining_up or group.ordered == TURNS.letting_go) and 2 or 0

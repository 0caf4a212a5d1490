-- Moves the time at which deliveries come again: at once or after a delay (nack), or their whole wait anew (working).
-- KEYS[1] meta
-- KEYS[2] log
-- KEYS[3] gone
-- KEYS[4] expiry
-- KEYS[5] group
-- KEYS[6] pending
-- KEYS[7] due
-- KEYS[8] leases
-- KEYS[9] replayed
-- KEYS[10] turns
-- KEYS[11] ready
-- KEYS[12] runs
-- KEYS[13] members
-- KEYS[14] shelved
-- ARGV[1] wake: channel
-- ARGV[2] latest: what the store's steady clock in ms is at most
-- ARGV[3] delay_ms: until it comes again; empty restarts the clock of its delivery
-- ARGV[4] mode: offsets or leases
-- ARGV[5] holder: "=" and the consumer whose deliveries count; empty: whoever has them
-- ARGV[6...] values: offsets or leases
-- returns: how many it applied to
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP OKMQ_LEASE_LOST
-- flags: allow-oom
-- include: clock, state, gone, floor, members, group, runs, order, out, answers
local meta, log, group_key, members = KEYS[1], KEYS[2], KEYS[5], KEYS[13]
local keys = {gone = KEYS[3], expiry = KEYS[4], pending = KEYS[6], due = KEYS[7], leases = KEYS[8], replayed = KEYS[9],
  turns = KEYS[10], ready = KEYS[11], runs = KEYS[12], shelved = KEYS[14]}
local wake, latest, delay_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key, members)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
floor_settle(log, keys.gone, meta, state)
local was_full = group_is_full(group, keys)
-- A cumulative group's nack is of the message named, not of everything before it.
local answer = answer_read(ARGV[4], ARGV[5], {unpack(ARGV, 6)})
local offsets, lost, came, _, _, gone = answer_find(keys, state, group, answer)
if not offsets then
  group_save(group_key, group)
  return redis.error_reply('OKMQ_LEASE_LOST ' .. lost)
end

group.answered_ms = state_now(state)
-- What went for a while counts for nothing now, and comes at its new time when it is brought back.
local moved = {unpack(offsets)}
for _, offset in ipairs(gone) do
  if redis.call('ZSCORE', keys.shelved, offset) then moved[#moved + 1] = offset end
end
local by_time, leases = {}, #moved > 0 and redis.call('HMGET', keys.leases, unpack(moved)) or {}
for n, lease in ipairs(leases) do
  local deliveries, consumer = string.match(lease, '^(%d+):%d+:%d+:(.*)$')
  local wait = delay_ms or group_wait_ms(group, tonumber(deliveries))
  members_tell(group, consumer, 0)
  -- At once is at once for everybody, also for a process whose clock is some milliseconds behind.
  local at = wait > 0 and latest + wait or 0
  by_time[2 * n - 1], by_time[2 * n] = string.format('%.0f', at), moved[n]
  group_look_again(group, at)
end
if #moved > 0 then redis.call('ZADD', keys.due, unpack(by_time)) end
group_save(group_key, group)
local has_room = came > 0 or (was_full and not group_is_full(group, keys))
if has_room or (#offsets > 0 and delay_ms) then redis.call('PUBLISH', wake, 'due') end
return #offsets

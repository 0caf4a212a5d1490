-- Says how a group stands to one message that is visible; changes nothing.
-- KEYS[1] meta
-- KEYS[2] gone
-- KEYS[3] group
-- KEYS[4] pending
-- KEYS[5] due
-- KEYS[6] leases
-- KEYS[7] parked
-- KEYS[8] dead
-- KEYS[9] runs
-- ARGV[1] offset
-- ARGV[2] is_keyed: 1 where it has a key
-- ARGV[3] key
-- returns: state (see streams.log.message_groups), deliveries, delivered or died ms or 0, consumer or reason, due (steady ms) or 0,
--   visible messages of any key that the group comes to before it, 1 where this delivery is the last that it gets
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP
-- flags: no-writes
-- include: clock, state, gone, floor, group, runs
local meta, gone, group_key, pending, due, leases = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local parked, dead, offset = KEYS[7], KEYS[8], ARGV[1]
local number = tonumber(offset)

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
local run = group.runs > 0 and runs_from({runs = KEYS[9]}, number) or nil
if run and run.first <= number then
  local held = runs_lease(run, number)
  return {'in_flight', 1, tonumber(run.at_ms), run.consumer, tonumber(run.due), 0, group_is_spent(group, held) and 1 or 0}
end
if redis.call('ZSCORE', pending, offset) then
  local held, due_ms = lease_read(leases, offset), redis.call('ZSCORE', due, offset)
  -- What is in flight and due at no time was replayed, and waits for the turn of its key.
  if not due_ms then return {'held_back', held.deliveries, 0, '', 0, 0, 0} end
  return {'in_flight', held.deliveries, tonumber(held.at_ms), held.consumer, tonumber(due_ms), 0,
    group_is_spent(group, held) and 1 or 0}
end
if redis.call('ZSCORE', parked, offset) then return {'held_back', 0, 0, '', 0, 0, 0} end
local fields = {}
if ARGV[2] == '1' then fields[7], fields[8] = 'k', ARGV[3] end
local is_wanted, delivered = group_wants(group, {offset, fields}), math.max(group.delivered, state.floor - 1)
-- After a seek back the group comes to it again, whether it died before or not.
if is_wanted and number > delivered then
  return {'to_come', 0, 0, '', 0, number - 1 - delivered - gone_between(gone, delivered + 1, number - 1), 0}
end
local died = redis.call('ZRANGEBYSCORE', dead, offset, offset, 'LIMIT', 0, 1)[1]
if died then
  local letter = cmsgpack.unpack(died)
  return {'dead_letter', letter.deliveries, letter.died_ms, letter.reason, 0, 0, 0}
end
return {is_wanted and 'passed' or 'filtered', 0, 0, '', 0, 0, 0}

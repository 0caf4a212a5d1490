-- Moves a group: what is in flight is void, delivery counts start anew, dead letters stay.
-- KEYS[1] meta
-- KEYS[2] group
-- KEYS[3] pending
-- KEYS[4] due
-- KEYS[5] leases
-- KEYS[6] replayed
-- KEYS[7] turns
-- KEYS[8] parked
-- KEYS[9] ready
-- KEYS[10] log
-- KEYS[11] gone
-- KEYS[12] went
-- KEYS[13] last
-- KEYS[14] expiry
-- KEYS[15] dead
-- KEYS[16] runs
-- KEYS[17] members
-- KEYS[18] shelved
-- KEYS[19] parked_aside
-- KEYS[20] brought
-- ARGV[1] wake: channel
-- ARGV[2] next: the offset that is delivered next; beyond the end is the end
-- returns: the next offset of before and after; none when it has to be called again once what is over has expired, or
--   because there are more replayed dead letters to put back
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP
-- flags: allow-oom
-- include: clock, state, gone, floor, members, group, runs, order, out, losses
local meta, group_key, pending, due, leases, replayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local turns, parked, ready, log, last = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[13]
local expiry, dead, runs, members, shelved = KEYS[14], KEYS[15], KEYS[16], KEYS[17], KEYS[18]
local parked_aside, brought = KEYS[19], KEYS[20]
local keys = {log = log, gone = KEYS[11], went = KEYS[12], parked = parked, pending = pending, due = due, leases = leases,
  replayed = replayed, turns = turns, ready = ready, shelved = shelved}
local wake, wanted = ARGV[1], tonumber(ARGV[2])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key, members)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end

floor_settle(log, keys.gone, meta, state)
local is_ripe = redis.call('ZCOUNT', expiry, '-inf', steady_ms()) > 0
if not losses_settle(keys, state, group) or is_ripe then
  group_save(group_key, group)
  return {}
end
-- A dead letter that was replayed and not acknowledged is one again. What the history brought it has still.
local page = math.max(1, math.min(100, math.floor(4194304 / math.max(1, state.widest))))
local letters, back = redis.call('HRANDFIELD', replayed, page, 'WITHVALUES'), {}
for n = 1, #letters, 2 do
  back[#back + 1] = letters[n]
  if cmsgpack.unpack(letters[n + 1]).died_ms > 0 then
    redis.call('ZREMRANGEBYSCORE', dead, letters[n], letters[n])
    redis.call('ZADD', dead, letters[n], letters[n + 1])
  end
end
out_forget(keys, group, back)
if #back == page then
  -- There is room again for what the history brings: nothing more of it comes to a group that is on its way elsewhere.
  if redis.call('UNLINK', brought) == 1 then group.generation = group.generation + 1 end
  group_save(group_key, group)
  return {}
end
-- A new generation makes the leases of before unknown, also to members that still hold them.
local before = group.delivered + 1
local after = math.max(state.floor, math.min(wanted, state.last + 1))
group.missed = losses_now(keys, state, group)
group.delivered = after - 1
if #group.filter == 0 then group.missed = group.missed - losses_ahead(keys, state, group) end
redis.call('UNLINK', pending, due, leases, replayed, turns, parked, ready, last, runs, shelved, parked_aside, brought)
members_release(members)
group.told = nil
group.runs, group.in_runs, group.returning = 0, 0, 0
group.generation = group.generation + 1
group_save(group_key, group)
redis.call('PUBLISH', wake, 'seek')
return {before, after}

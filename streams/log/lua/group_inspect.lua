-- Says how a group stands, once it has counted what went.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] group
-- KEYS[5] pending
-- KEYS[6] dead
-- KEYS[7] leases
-- KEYS[8] parked
-- KEYS[9] expiry
-- KEYS[10] went
-- KEYS[11] due
-- KEYS[12] replayed
-- KEYS[13] turns
-- KEYS[14] ready
-- KEYS[15] last
-- KEYS[16] runs
-- KEYS[17] members
-- KEYS[18] shelved
-- ARGV[1] steady: the store's steady clock in ms
-- ARGV[2] wake: channel
-- returns: delivered, ack floor, undelivered (all keys), pending, redelivered, dead letters, lost, acked,
--   time of the oldest message not acknowledged or 0, fetched_ms, acked_ms, paused_until (-1 without an end, 0: it is not),
--   made_ms, now, deliveries so far, removed while out, how many messages are out for the last time (100: or more),
--   ms until the oldest goes by age or -1,
--   1 when what expired must be swept first, 1 when parked ones must be, steady, age limit in ms or 0,
--   1 when the group has a filter, dead letters ever made by too many deliveries, 1 to call again first,
--   messages and bytes that may come before the oldest goes or -1, limits of messages and bytes or 0,
--   last offset and bytes ever appended, generation
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP
-- flags: allow-oom
-- include: clock, state, gone, floor, members, group, runs, order, out, losses, edge
local LAST_COUNTED = 100

local log, meta, gone, group_key, pending, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local leases, parked, expiry, last, members = KEYS[7], KEYS[8], KEYS[9], KEYS[15], KEYS[17]
local steady, wake = ARGV[1], ARGV[2]
local keys = {log = log, gone = gone, went = KEYS[10], expiry = expiry, pending = pending, due = KEYS[11], leases = leases,
  replayed = KEYS[12], turns = KEYS[13], ready = KEYS[14], parked = parked, runs = KEYS[16], shelved = KEYS[18]}

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key, members)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
local now = state_now(state)
floor_settle(log, gone, meta, state)
local settled = losses_settle(keys, state, group)
settled = out_sweep(keys, state, group, tonumber(steady)) and settled
group_save(group_key, group)
-- Who waits for room, or for the turn of a key, looks again.
if (keys.left or 0) > 0 then redis.call('PUBLISH', wake, 'due') end
local delivered = math.max(group.delivered, state.floor - 1)
local undelivered = state.last - delivered - gone_between(gone, delivered + 1, state.last)
local lost, unswept = losses_now(keys, state, group), 0
local floor, oldest = delivered, redis.call('ZRANGE', pending, 0, 0)[1]
if oldest then floor = math.min(floor, tonumber(oldest) - 1) end
if group.runs > 0 then floor = math.min(floor, runs_from(keys, 0).first - 1) end
if group.ordered > 0 then
  undelivered = undelivered + redis.call('ZCOUNT', parked, state.floor, '+inf')
  local first = redis.call('ZRANGEBYSCORE', parked, state.floor, '+inf', 'LIMIT', 0, 1)[1]
  if first then
    floor = math.min(floor, tonumber(first) - 1)
    if state.removals ~= group.swept then unswept = 1 end
  end
end
-- A replayed dead letter may be the oldest although the stream has lost it.
local waiting = group_entry(log, gone, keys.replayed, state, string.format('%.0f', floor + 1))
  or redis.call('XRANGE', log, gone_next(gone, math.max(floor + 1, state.floor)), '+', 'COUNT', 1)[1]
local oldest_ms, margin, room, room_bytes = waiting and entry_ms(waiting) or 0, edge_of(keys, state, delivered)
local ripe, on_last = redis.call('ZRANGE', expiry, 0, 0, 'WITHSCORES')[2], 0
-- What was answered is taken away, so that those that are counted stand first.
while on_last < LAST_COUNTED do
  local offsets, answered = redis.call('ZRANGE', last, on_last, LAST_COUNTED - 1), {}
  if #offsets == 0 then break end
  for _, offset in ipairs(offsets) do
    local held = lease_read(leases, offset)
    if held and group.max_deliver > 1 and held.deliveries >= group.max_deliver then on_last = on_last + 1
    else answered[#answered + 1] = offset end
  end
  if #answered > 0 then redis.call('ZREM', last, unpack(answered)) end
end
return {delivered, floor, undelivered, group_out(group, pending), group.redelivered, redis.call('ZCARD', dead), lost,
  group.acked, oldest_ms, group.fetched_ms, group.acked_ms, group_paused_until(group), group.made_ms, now, group.sequence,
  group.unfinished, on_last, margin,
  ripe and tonumber(ripe) <= steady_ms() and 1 or 0, unswept, tonumber(steady),
  (state.ttl or 0) * 1000, #group.filter > 0 and 1 or 0, group.dead_lettered, settled and 0 or 1,
  room, room_bytes, state.max_messages or 0, state.max_bytes or 0, state.last, state.cum, group.generation}

-- Says how a group stands.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] group
-- KEYS[5] pending
-- KEYS[6] dead
-- returns: delivered, ack floor, undelivered (all keys), pending, redelivered, dead letters, lost, acked,
--   time of the oldest message not acknowledged or 0, fetched_ms, acked_ms, paused_until, generation, now
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP
-- include: state, gone, floor, group
local log, meta, gone, group_key, pending, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
local now = state_now(state)
raise_floor(log, gone, state, floor_by_limits(log, gone, state, now))
state_save(meta, state)
local delivered = math.max(group.delivered, state.floor - 1)
local oldest = redis.call('ZRANGE', pending, 0, 0)[1]
local floor = oldest and tonumber(oldest) - 1 or delivered
local undelivered = state.last - delivered - gone_between(gone, delivered + 1, state.last)
local waiting = redis.call('XRANGE', log, gone_next(gone, math.max(floor + 1, state.floor)), '+', 'COUNT', 1)[1]
return {delivered, floor, undelivered, redis.call('ZCARD', pending), group.redelivered, redis.call('ZCARD', dead),
  group.lost + delivered - group.delivered, group.acked, waiting and entry_ms(waiting) or 0, group.fetched_ms,
  group.acked_ms, group.paused_until, group.generation, now}

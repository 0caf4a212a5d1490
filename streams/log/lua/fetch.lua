-- Hands out messages: first what is due again, then what is new. Each is leased to this call alone.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] group
-- KEYS[5] pending
-- KEYS[6] due
-- KEYS[7] leases
-- KEYS[8] dead
-- KEYS[9] replayed
-- ARGV[1] consumer: who fetches, for the record
-- ARGV[2] limit: most messages; 0 only retires what has been delivered too often
-- ARGV[3] max_bytes: where an answer stops, after one message at least
-- ARGV[4] generation: of a poll's first look, which takes nothing any more after a seek; empty at first
-- ARGV[5] taken: bytes that earlier calls of the same fetch took
-- returns: {[entry, deliveries, lease] ...}, undelivered left behind, next due ms or 0, 1 to call again, now, generation
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP
-- include: state, gone, floor, group
local log, meta, gone, group_key, pending = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local due, leases, dead, replayed = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local consumer, limit, max_bytes, generation = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local size = tonumber(ARGV[5])
local SCAN = 1000

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
local now = state_now(state)
if generation and generation ~= group.generation then return {{}, 0, 0, 0, now, string.format('%.0f', group.generation)} end
raise_floor(log, gone, state, floor_by_limits(log, gone, state, now))
state_save(meta, state)
local paused = group.paused_until < 0 or group.paused_until > now
local out, again = {}, false

local in_order, by_time, held_by = {}, {}, {}

local function lease(entry, deliveries)
  local offset = string.match(entry[1], '^(%d+)')
  group.sequence = group.sequence + 1
  size = size + #entry[2][4]
  out[#out + 1] = {entry, deliveries, string.format('%.0f-%s-%.0f', group.generation, offset, group.sequence)}
  if group.ack == 'none' then return end
  in_order[#in_order + 1], in_order[#in_order + 2] = offset, offset
  by_time[#by_time + 1], by_time[#by_time + 2] = now + group_wait_ms(group, deliveries), offset
  held_by[#held_by + 1] = offset
  held_by[#held_by + 1] = string.format('%d:%.0f:%.0f:%s', deliveries, group.sequence, now, consumer)
end

if not paused then
  local ripe = redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, math.max(limit, 100))
  table.sort(ripe, function(a, b) return tonumber(a) < tonumber(b) end)
  for _, offset in ipairs(ripe) do
    local held, entry = lease_read(leases, offset), group_entry(log, gone, replayed, state, now, offset)
    if not entry then
      group_forget(pending, due, leases, offset)
      group.lost = group.lost + 1
      again = #ripe >= 100
    elseif group.max_deliver > 0 and held.deliveries >= group.max_deliver then
      group_bury(dead, entry, 'max_deliver', held.deliveries, now)
      group_forget(pending, due, leases, offset)
      redis.call('HDEL', replayed, offset)
      again = #ripe >= 100
    elseif #out < limit and (size == 0 or size + #entry[2][4] <= max_bytes) then
      if held.deliveries > 0 then group.redelivered = group.redelivered + 1 end
      lease(entry, held.deliveries + 1)
      if group.ack == 'none' then
        group_forget(pending, due, leases, offset)
        redis.call('HDEL', replayed, offset)
      end
    end
  end
  if group.delivered < state.floor - 1 then
    -- What went before it was delivered is counted, not passed over in silence.
    group.lost = group.lost + state.floor - 1 - group.delivered
    group.delivered = state.floor - 1
  end
  local room = limit - #out
  if group.ack ~= 'none' then room = math.min(room, group.max_ack_pending - redis.call('ZCARD', pending)) end
  local page = math.max(1, math.min(SCAN, #group.filter > 0 and SCAN or room, math.floor((max_bytes - size) / math.max(1, state.widest))))
  if room > 0 and group.delivered < state.last then
    local found = redis.call('XRANGE', log, group.delivered + 1, state.last, 'COUNT', page)
    local whole = true
    for _, entry in ipairs(found) do
      if entry_visible(gone, state, now, entry) and group_wants(group, entry) then
        if room == 0 or (size > 0 and size + #entry[2][4] > max_bytes) then
          whole = false
          break
        end
        lease(entry, 1)
        room = room - 1
      end
      group.delivered = entry_offset(entry)
    end
    if whole and #found < page then group.delivered = state.last end
    again = again or (whole and #found == page)
  end
end
-- A few calls with many arguments cost a third of many calls with few.
for first = 1, #in_order, 2000 do
  local last = math.min(first + 1999, #in_order)
  redis.call('ZADD', pending, unpack(in_order, first, last))
  redis.call('ZADD', due, unpack(by_time, first, last))
  redis.call('HSET', leases, unpack(held_by, first, last))
end
if limit > 0 then group.fetched_ms = now end
group_save(group_key, group)
local left = state.last - group.delivered - gone_between(gone, group.delivered + 1, state.last)
local next_due = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2] or '0'
if paused then next_due = math.max(0, group.paused_until) end
return {out, left, tonumber(next_due), again and #out < limit and 1 or 0, now,
  string.format('%.0f', group.generation)}

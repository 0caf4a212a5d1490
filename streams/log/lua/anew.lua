-- Begins the counters of a stream that lost them: by its entries where these are there, else above what was ever given.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] hidden
-- KEYS[5] went
-- ARGV[1] reserved: up to this offset some may have been given to messages that are not there any more
-- ARGV[2] widest: bytes that hardly a message of it is larger than, if any is there
-- ARGV[3] steady: ms of the steady clock
-- returns: 1 when they were begun, 0 when they were there
-- flags: allow-oom
-- include: clock, state, gone, floor
local log, meta, gone, hidden, went = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local reserved, widest, steady = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

if redis.call('HEXISTS', meta, 'counters') == 1 then return 0 end
local now = server_ms()
local state = {last = reserved, last_ms = 0, last_id = '', cum = 0, messages = 0, bytes = 0, floor = reserved + 1,
  floor_cum = 0, committed = reserved, archived = reserved, purged = 0, held_since = 0, duplicates = 0, widest = 0,
  ids_now = 0, ids_since = now, ceiling = 0, hidden = 0, indexed = 0, indexed_for = 0, removals = 0, passed = 0, turn = 0,
  kept = 0, crowded = 0, ids_widened = now, ids_before = 1, returns = 0, keyed = 1, owed = 0, by_hand = 0, by_hand_bytes = 0,
  loose = -1, keys_from = 0, missed = 0, ids_ahead = now - steady}
local first = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
local newest = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1]
-- What a log gave last it knows itself, also where that has gone since. An access list of before does not let it say so.
local told = redis.call('EXISTS', log) == 1 and redis.pcall('XINFO', 'STREAM', log) or {}
for n = 1, #told, 2 do
  if told[n] == 'last-generated-id' then
    state.last, state.last_ms = entry_offset({told[n + 1]}), entry_ms({told[n + 1]})
    state.floor, state.committed, state.archived = state.last + 1, 0, 0
  end
end
if first then
  if told.err then
    local run = redis.call('ZREVRANGEBYSCORE', gone, '+inf', 0, 'LIMIT', 0, 1)[1]
    state.last, state.last_ms = math.max(entry_offset(newest), run and gone_run(run).last or 0), entry_ms(newest)
  end
  state.committed, state.archived, state.widest = 0, 0, widest
  state.cum = tonumber(newest[2][6])
  if entry_offset(newest) == state.last then state.last_id = newest[2][2] end
  state.floor, state.floor_cum = entry_offset(first), tonumber(first[2][6]) - #first[2][4]
  local upto, cum = gone_next(gone, state.floor), state.floor_cum
  if upto > state.floor then
    -- The floor itself is visible.
    local visible = redis.call('XRANGE', log, string.format('%.0f', upto), '+', 'COUNT', 1)[1]
    state.floor = math.min(upto, state.last + 1)
    state.floor_cum = visible and tonumber(visible[2][6]) - #visible[2][4] or state.cum
  end
  local count, bytes = gone_between(gone, state.floor, state.last)
  state.messages = state.last - state.floor + 1 - count
  state.bytes = state.cum - state.floor_cum - bytes
end
state.hidden = redis.call('EXISTS', hidden)
state.removals = tonumber(redis.call('ZRANGE', went, -1, -1, 'WITHSCORES')[2] or 0)
-- Nobody knows who took what is not there: it is not put down to retention.
state.by_hand, state.by_hand_bytes = state.last - state.messages, state.cum - state.bytes
state_save(meta, state)
return 1

-- Physically removes a slice of what is invisible, below the floor or hidden above it: at once what a person purged, and
-- what the history has or need not have.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] hidden
-- KEYS[5] by_key
-- KEYS[6] latest
-- KEYS[7] went
-- KEYS[8] aside
-- KEYS[9] expiry
-- KEYS[10] removals
-- ARGV[1] hold_ms: how long the history of an archived stream is waited for
-- ARGV[2] counted: up to which offset groups with a filter have counted what they lost; empty where nobody has asked
-- ARGV[3] times: so many times the usual budget
-- returns: entries removed, 1 when done or -1 when groups must count first, entries removed that the history did not get in time, entries that are left and seen by nobody
-- errors: OKMQ_NO_STREAM
-- flags: allow-oom
-- include: clock, state, gone, floor, taken, group, removal, aside, budget, drop, wait
local meta = KEYS[2]
local stream = {log = KEYS[1], gone = KEYS[3], hidden = KEYS[4], by_key = KEYS[5], latest = KEYS[6], went = KEYS[7], expiry = KEYS[9]}
local aside, removals, hold_ms, counted = KEYS[8], KEYS[10], tonumber(ARGV[1]), tonumber(ARGV[2])
local budget = budget_begin(1, tonumber(ARGV[3]))

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
if not counted and redis.call('EXISTS', stream.went) == 1 then return {0, -1, 0, 0} end
local first = redis.call('XRANGE', stream.log, '-', '+', 'COUNT', 1)[1]
local edge = floor_or_kept(state)
local below = math.min(edge, (counted or state.last) + 1)
local from = first and entry_offset(first) or edge
local last_hidden = state.hidden == 1 and tonumber(redis.call('ZREVRANGE', stream.hidden, 0, 0)[1] or nil) or 0
-- What the history has or need not have lies below free, and stop is where this call must end.
local taken = taken_load(meta, state)
local free, stop = taken_free(stream, state, taken), state.last + 1
if state.archive == 1 and ((from < edge and free < edge) or free <= last_hidden) then
  -- While the history itself waits for what may come back, what lies above that has not begun to wait for the history.
  local upto, back = math.max(edge, last_hidden + 1), aside_above(aside, removals, free - 1)
  stop = wait_over(meta, state, free, math.min(upto, back or upto), hold_ms)
else
  wait_end(meta, state)
end
local unseen_from = state.archive == 1 and free or stop
local removed, missed, done = 0, 0, true
local cut = false
for n = 1, #taken, 2 do
  if done and state.archive == 1 and taken[n + 1] > free then
    local behind, upto, all = drop_taken(stream, state, math.max(taken[n], free), math.min(taken[n + 1], below), budget)
    removed, done = removed + behind, all
    -- What has gone need not be known.
    if not all then taken[n], cut = upto, true end
  end
end
if done then
  local low, low_missed, all = drop_below(stream, state, from, math.min(stop, below), unseen_from, budget)
  removed, missed, done = removed + low, missed + low_missed, all
end
if #taken > 0 then
  local left = done and taken_left(state, taken, below) or taken
  if cut or #left < #taken or state.purged > 0 then taken_save(meta, left) end
  state.owed, state.purged = 0, 0
end
if last_hidden > 0 and done then
  local single, single_missed, all = drop_hidden(stream, state, stop, unseen_from, budget)
  removed, missed, done = removed + single, missed + single_missed, done and all
end
state.missed = state.missed + missed
if redis.call('EXISTS', stream.hidden, aside) == 0 then state.hidden = 0 end
-- What says of single messages that they were set aside stays until these have gone physically.
local forgot = done and gone_forget(stream.gone, math.min(below, aside_above(aside, removals, 0) or below), 2000)
state_save(meta, state)
return {removed, forgot and 1 or 0, missed, math.max(0, redis.call('XLEN', stream.log) - state.messages)}

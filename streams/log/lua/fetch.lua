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
-- KEYS[10] turns
-- KEYS[11] parked
-- KEYS[12] ready
-- KEYS[13] expiry
-- KEYS[14] went
-- KEYS[15] last
-- KEYS[16] runs
-- KEYS[17] members
-- KEYS[18] shelved
-- KEYS[19] parked_aside
-- ARGV[1] consumer: who fetches, for the record
-- ARGV[2] limit: most messages; 0 only retires what has been delivered too often
-- ARGV[3] max_bytes: where an answer stops, after one message at least
-- ARGV[4] generation: of a poll's first look, which takes nothing any more after a seek; empty at first
-- ARGV[5] taken: bytes that earlier calls of the same fetch took
-- ARGV[6] steady: the store's steady clock in ms, what it is at least
-- ARGV[7] due_by: what was due by then comes again; the steady clock when the fetch began, so that nothing comes twice in it
-- ARGV[8] latest: what the steady clock is at most; what goes out now is held for its time from then on
-- returns: {[entry, deliveries, lease] ...}, undelivered left behind, ms until something comes again or -1,
--   1 to call again, 2 to do so after order_change and 3 after give_back_aside, generation, 1 when the group has a filter (what is left has other keys among it),
--   1 when messages went that are among what is left, {first, last, sequence of the first} of new messages taken as a
--   whole, their entries or nothing when the caller reads them by itself
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP
-- include: clock, state, gone, floor, members, group, runs, order, out, losses, deliver
local log, meta, gone, group_key, members = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[17]
local fetch = {log = log, gone = gone, pending = KEYS[5], due = KEYS[6], leases = KEYS[7], dead = KEYS[8], replayed = KEYS[9],
  turns = KEYS[10], parked = KEYS[11], ready = KEYS[12], expiry = KEYS[13], went = KEYS[14],
  last = KEYS[15], runs = KEYS[16], shelved = KEYS[18], parked_aside = KEYS[19], consumer = ARGV[1],
  limit = tonumber(ARGV[2]), max_bytes = tonumber(ARGV[3]), size = tonumber(ARGV[5]), steady = tonumber(ARGV[6]),
  due_by = tonumber(ARGV[7]), latest = tonumber(ARGV[8]),
  out = {}, range = {}, entries = {}, in_order = {}, by_time = {}, held_by = {}, at_last = {}, due_again = {}}
local opened_in = tonumber(ARGV[4])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key, members)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
local generation = string.format('%.0f', group.generation)
if opened_in and opened_in ~= group.generation then return {{}, 0, -1, 0, generation, 0, 0, {}, {}} end
if group.ordered == TURNS.lining_up or group.ordered == TURNS.letting_go then return {{}, 0, -1, 2, generation, 0, 0, {}, {}} end
if group.returning > 0 then return {{}, 0, -1, 3, generation, 0, 0, {}, {}} end
fetch.state, fetch.group, fetch.now = state, group, state_now(state)
floor_settle(log, gone, meta, state)
local paused_until, again = group_paused_until(group), false
local paused = paused_until ~= 0
local settled = losses_settle(fetch, state, group)

local function first_due() return tonumber(redis.call('ZRANGE', fetch.due, 0, 0, 'WITHSCORES')[2]) end
local ripe, next_due = redis.call('ZRANGE', fetch.expiry, 0, 0, 'WITHSCORES')[2], first_due()
fetch.has_expiry = ripe ~= nil

if not paused then
  fetch.pending_count = group_taken(group, fetch)
  -- What went frees its place, and the turn of its key.
  if group.ordered == TURNS.on or fetch.pending_count + fetch.limit > group.max_ack_pending then
    again = not out_sweep(fetch, state, group, fetch.steady)
    fetch.pending_count = group_taken(group, fetch)
  end
  local more_due, is_full = false, false
  if next_due and next_due <= fetch.due_by then more_due, is_full = deliver_due(fetch) end
  deliver_count_lost(fetch)
  if not more_due and not is_full then
    local more_ready = false
    if group.ordered > 0 then more_ready, is_full = deliver_ready(fetch) end
    -- What a group passes by must have been counted.
    local more = not settled
    if is_full then more = false elseif settled then more = deliver_range(fetch) end
    if more == nil then more = deliver_new(fetch) end
    again = more or more_ready or again
  end
  -- Where a message does not fit the answer is over, whatever is behind it.
  again = not is_full and (more_due or again)
  deliver_write(fetch)
end
if fetch.limit > 0 then
  group.fetched_ms = fetch.steady
  members_tell(group, fetch.consumer, 0, fetch.now)
end
group_save(group_key, group)
local left = state.last - group.delivered - gone_between(gone, group.delivered + 1, state.last)
local wait = -1
local unswept = ripe and tonumber(ripe) <= steady_ms() and 1 or 0
if group.ordered > 0 then
  local parked = redis.call('ZCOUNT', fetch.parked, state.floor, '+inf')
  left = left + parked
  if parked > 0 and state.removals ~= group.swept then unswept = 1 end
end
if paused then
  if paused_until > 0 then wait = paused_until - server_ms() end
else
  next_due = first_due()
  if next_due then wait = math.max(0, next_due - fetch.steady) end
end
return {fetch.out, left, wait, again and #fetch.out < fetch.limit and 1 or 0, generation,
  #group.filter > 0 and 1 or 0, unswept, fetch.range, fetch.entries}

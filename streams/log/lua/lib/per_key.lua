-- The newest N of each key are kept. The sorted set "latest" indexes the visible keyed messages from state.indexed on, by
-- name; every one of them that has N newer ones of its key goes, so it is right to act while the index is being made.
-- Needs clock, state, gone, floor, removal and budget.

-- At most so many messages of one key go beyond what a batch brings: more are there only after the limit was lowered.
local PER_KEY = {surplus = 100}

-- So many older ones are looked at together when the index is made.
PER_KEY.step = 100

local function per_key_after(key) return '(' .. key .. '\1' end

-- How many of a key are indexed from an offset on.
local function per_key_count(latest, key, offset)
  return redis.call('ZLEXCOUNT', latest, '[' .. latest_member(key, offset), per_key_after(key))
end

-- The offset of the newest message that was published under a key, as text; 0 once that message is over or gone, whatever
-- took it. Bodies are not read: a batch may ask for a thousand keys.
local function per_key_newest(stream, state, key)
  local offset = redis.call('HGET', stream.by_key, key)
  if not offset or tonumber(offset) < state.floor or gone_has(stream.gone, tonumber(offset)) then return '0' end
  local ends = redis.call('ZSCORE', stream.expiry, offset)
  return ends and tonumber(ends) <= steady_ms() and '0' or offset
end

-- How many of a key are indexed is remembered from one call to the next, as long as nobody else has changed the stream's
-- counters: every message that comes or goes changes them.
PER_KEY.remembered = 20000
local per_key_last = {}

-- Begins the index, anew where less of a key is kept than before.
local function per_key_begin(stream, state)
  if state.indexed == 0 or state.max_messages_per_key < state.indexed_for then
    redis.call('UNLINK', stream.latest)
    state.indexed, per_key_last = state.last + 1, {}
  end
  state.indexed_for = state.max_messages_per_key
end

-- What new messages, {key, offset, size} in order, push out: entries that are stored, offsets that the batch itself
-- brings, messages and bytes of both. Nothing of it is done yet.
local function per_key_plan(stream, state, incoming)
  per_key_begin(stream, state)
  local plan, of_key, order = {stored = {}, brought = {}, messages = 0, bytes = 0}, {}, {}
  for _, message in ipairs(incoming) do
    local key = message[1]
    if not of_key[key] then of_key[key], order[#order + 1] = {}, key end
    table.insert(of_key[key], message)
  end
  for _, key in ipairs(order) do
    local brought = of_key[key]
    local stored = per_key_count(stream.latest, key, state.floor)
    local excess = stored + #brought - state.max_messages_per_key
    local oldest = math.min(excess, stored, 2 * #brought + PER_KEY.surplus)
    if oldest > 0 then
      local low = '[' .. latest_member(key, state.floor)
      for _, member in ipairs(redis.call('ZRANGEBYLEX', stream.latest, low, per_key_after(key), 'LIMIT', 0, oldest)) do
        local offset = tonumber(string.sub(member, -16))
        local entry = redis.call('XRANGE', stream.log, offset, offset)[1]
        plan.stored[#plan.stored + 1] = entry
        plan.bytes = plan.bytes + #entry[2][4]
      end
    end
    for n = 1, math.min(excess - stored, #brought) do
      plan.brought[#plan.brought + 1] = brought[n][2]
      plan.bytes = plan.bytes + brought[n][3]
    end
  end
  plan.messages = #plan.stored + #plan.brought
  return plan
end

-- Indexes what was appended and takes away what it pushed out.
local function per_key_apply(stream, state, incoming, plan)
  for _, message in ipairs(incoming) do redis.call('ZADD', stream.latest, 0, latest_member(message[1], message[2])) end
  local removal = removal_begin()
  for _, entry in ipairs(plan.stored) do removal_take(removal, entry) end
  for _, offset in ipairs(plan.brought) do
    removal_take(removal, redis.call('XRANGE', stream.log, offset, offset)[1])
  end
  removal_end(stream, state, removal)
end

-- What is remembered of a stream whose index has been begun.
local function per_key_counts(stream, state)
  local is_same = per_key_last.log == stream.log and per_key_last.packed == state.packed
  return is_same and per_key_last.counts or {of = {}, size = 0}
end

-- To be said once the state is saved.
local function per_key_remember(stream, state, counts)
  per_key_last = counts.size <= PER_KEY.remembered and {log = stream.log, packed = state.packed, counts = counts} or {}
end

-- Indexes a step of older messages, newest first, and takes away those with enough newer ones; true when all are done.
-- counts: how many of a key are indexed, as far as is known.
local function per_key_step(stream, state, removal, counts)
  local step = math.max(1, math.min(PER_KEY.step, math.floor(4194304 / math.max(1, state.widest))))
  local found, members = {}, {}
  if state.indexed > state.floor then
    found = redis.call('XREVRANGE', stream.log, state.indexed - 1, state.floor, 'COUNT', step)
  end
  local is_visible = entry_looker(stream.gone, state)
  for _, entry in ipairs(found) do
    local offset, key = entry_offset(entry), entry[2][7] == 'k' and entry[2][8]
    if key and is_visible(entry, offset) then
      local count = counts.of[key]
      if not count then count, counts.size = per_key_count(stream.latest, key, offset), counts.size + 1 end
      if count < state.max_messages_per_key then
        members[#members + 1], members[#members + 2] = '0', latest_member(key, offset)
        count = count + 1
      else
        removal_take(removal, entry)
      end
      counts.of[key] = count
    end
    state.indexed = offset
  end
  removal_in_chunks(members, function(...) redis.call('ZADD', stream.latest, ...) end)
  removal_end(stream, state, removal)
  if #found == step then return false end
  state.indexed = 1
  return true
end

-- Whether as many of every key are indexed as stay, so that all that lies below the index goes. Every key that is visible
-- must be known for that, nothing in the index may be over by its own time, and nothing be set aside.
local function per_key_is_full(stream, state)
  if state.loose >= state.floor or state.kept > 0 then return false end
  local known = redis.call('HLEN', stream.by_key)
  return known > 0 and redis.call('ZCARD', stream.latest) == known * state.max_messages_per_key
    and redis.call('ZCOUNT', stream.expiry, '-inf', steady_ms()) == 0
end

-- Takes away as a whole what lies below a full index; returns messages and bytes that went.
local function per_key_take_rest(stream, state)
  local messages, bytes = raise_floor(stream.log, stream.gone, state, state.indexed)
  state.keys_from, state.indexed = state.indexed, 1
  return messages, bytes
end

-- Goes on with that as long as the budget lasts; returns messages and bytes that went, whether all are done, and the counts.
local function per_key_index(stream, state, budget)
  per_key_begin(stream, state)
  local removal, counts, done = removal_begin(), per_key_counts(stream, state), false
  removal.is_replaced = true
  repeat
    if per_key_is_full(stream, state) then
      local messages, bytes = per_key_take_rest(stream, state)
      return removal.messages + messages, removal.bytes + bytes, true, counts
    end
    done = per_key_step(stream, state, removal, counts)
  until done or not budget_goes_on(budget)
  return removal.messages, removal.bytes, done, counts
end

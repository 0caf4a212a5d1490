-- Appends a batch: all of it or nothing, new offsets contiguous, ids already known answered with their first offset.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] ids_a
-- KEYS[5] ids_b
-- KEYS[6] by_key
-- KEYS[7] expiry
-- KEYS[8] hidden
-- KEYS[9] latest
-- KEYS[10] went
-- KEYS[11] groups
-- ARGV[1] wake: channel
-- ARGV[2] columns: which of i b k h t each message brings, in this order
-- ARGV[3] expect_last: offset or empty
-- ARGV[4] expect_id: id or empty
-- ARGV[5] expect_keys: JSON [[key, offset], ...] or empty
-- ARGV[6...] values: of each message, a value a column; empty is absent
-- returns: one offset a message, negative where it is a duplicate
-- errors: OKMQ_NO_STREAM OKMQ_SEALED OKMQ_TOO_LARGE OKMQ_FULL OKMQ_WRONG_LAST OKMQ_WRONG_ID OKMQ_WRONG_KEY OKMQ_CEILING
-- include: clock, state, gone, floor, ids, removal, budget, expired, per_key
local log, meta, gone, ids_a, ids_b, by_key, expiry = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local stream = {log = log, gone = gone, hidden = KEYS[8], by_key = by_key, latest = KEYS[9], went = KEYS[10],
  expiry = expiry, groups = KEYS[11]}
local wake, columns, expect_last, expect_id, expect_keys = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
if state.sealed == 1 then return redis.error_reply('OKMQ_SEALED') end
local now = state_now(state)
local stride, first_value = #columns, 6
local ids, count = {}, (#ARGV - first_value + 1) / stride
for n = 1, count do ids[n] = ARGV[first_value + (n - 1) * stride] end
local fresh_bucket, known = ids_known(ids_a, ids_b, state, now, steady_ms(), ids)

-- Everything is checked before anything is written: a script that fails midway keeps what it wrote.
local answer, seen, fresh, size, cum = {}, {}, {}, 0, state.cum
for n = 1, count do
  local first = known[n] or seen[ids[n]]
  if first then
    answer[n] = -first
  else
    local bytes = #ARGV[first_value + (n - 1) * stride + 1]
    if bytes > state.max_message_bytes then
      return redis.error_reply(string.format('OKMQ_TOO_LARGE %d %d %d', n - 1, bytes, state.max_message_bytes))
    end
    fresh[#fresh + 1], size = n, size + bytes
    answer[n] = state.last + #fresh
    seen[ids[n]] = answer[n]
  end
end
if #fresh == 0 then
  state.duplicates = state.duplicates + count
  state_save(meta, state)
  return answer
end
if expect_last ~= '' or expect_id ~= '' or expect_keys ~= '' then
  local wrong, held = nil, {}
  raise_floor(log, gone, state, floor_by_limits(log, gone, state))
  for n, expected in ipairs(expect_keys ~= '' and cjson.decode(expect_keys) or {}) do
    held[n] = {expected[1], per_key_newest(stream, state, expected[1])}
    if tonumber(held[n][2]) ~= expected[2] then wrong = 'OKMQ_WRONG_KEY' end
  end
  if expect_id ~= '' and expect_id ~= state.last_id then wrong = 'OKMQ_WRONG_ID' end
  if expect_last ~= '' and tonumber(expect_last) ~= state.last then wrong = 'OKMQ_WRONG_LAST' end
  if wrong then
    local actual = cjson.encode({string.format('%d', state.last), state.last_id, held})
    return redis.error_reply(wrong .. ' ' .. actual)
  end
end
if state.ceiling > 0 and state.last + #fresh > state.ceiling then return redis.error_reply('OKMQ_CEILING') end
-- What is over and has to go first may take as many steps as this batch is worth.
local steps = math.ceil(#fresh / 50 + size / 32768)
local incoming, pushed_out = {}, nil
-- What the limits take by themselves is not what newer messages of its key push out.
if state.discard == 'new' then raise_floor(log, gone, state, floor_by_limits(log, gone, state)) end
if state.max_messages_per_key then
  -- An index that still has messages that are over would count them: it begins anew.
  local _, is_all = expired_take(stream, state, budget_begin(steps))
  if not is_all then state.indexed = 0 end
  for _, n in ipairs(string.sub(columns, 3, 3) == 'k' and fresh or {}) do
    local at = first_value + (n - 1) * stride
    if ARGV[at + 2] ~= '' then incoming[#incoming + 1] = {ARGV[at + 2], answer[n], #ARGV[at + 1]} end
  end
  pushed_out = per_key_plan(stream, state, incoming)
end
if state.discard == 'new' then
  local less = pushed_out or {messages = 0, bytes = 0}
  local count_after, bytes_after = #fresh - less.messages, size - less.bytes
  local function is_full()
    return (state.max_messages and state.messages + count_after > state.max_messages)
      or (state.max_bytes and state.bytes + bytes_after > state.max_bytes)
  end
  if is_full() then expired_take(stream, state, budget_begin(steps), is_full) end
  state_save(meta, state)
  if state.max_messages and state.messages + count_after > state.max_messages then
    return redis.error_reply(string.format('OKMQ_FULL max_messages %d', state.max_messages))
  end
  if state.max_bytes and state.bytes + bytes_after > state.max_bytes then
    return redis.error_reply(string.format('OKMQ_FULL max_bytes %d', state.max_bytes))
  end
end

local remembered, keyed, widest, ms = {}, {}, state.widest, string.format('-%d', now)
for at_fresh = 1, #fresh do
  local n = fresh[at_fresh]
  local at = first_value + (n - 1) * stride
  local id, body, text = ids[n], ARGV[at + 1], string.format('%d', answer[n])
  local size_bytes = #body
  cum = cum + size_bytes
  local width = size_bytes
  if stride == 2 then
    redis.call('XADD', log, text .. ms, 'i', id, 'b', body, 'c', string.format('%d', cum))
  else
    local entry = {'i', id, 'b', body, 'c', string.format('%d', cum)}
    for column = 3, stride do
      local name, value = string.sub(columns, column, column), ARGV[at + column - 1]
      if value ~= '' then
        if name == 'k' then keyed[#keyed + 1], keyed[#keyed + 2] = value, text end
        width = width + #value
        if name == 't' then
          name, value = 'x', string.format('%d', steady_ms() + tonumber(value) * 1000)
          redis.call('ZADD', expiry, value, text)
        end
        entry[#entry + 1], entry[#entry + 2] = name, value
      end
    end
    redis.call('XADD', log, text .. ms, unpack(entry))
  end
  if width > widest then widest = width end
  remembered[2 * at_fresh - 1], remembered[2 * at_fresh] = id, text
end
state.widest = widest
redis.call('HSET', fresh_bucket, unpack(remembered))
if #keyed > 0 then
  redis.call('HSET', by_key, unpack(keyed))
  state.keyed = 1
end
state.duplicates = state.duplicates + count - #fresh
state.last, state.last_ms, state.last_id, state.cum = state.last + #fresh, now, ids[fresh[#fresh]], cum
if #keyed < 2 * #fresh then state.loose = state.last end
state.messages, state.bytes = state.messages + #fresh, state.bytes + size
if pushed_out then per_key_apply(stream, state, incoming, pushed_out) end
if state.discard ~= 'new' then
  expired_make_room(stream, state, steps)
  raise_floor(log, gone, state, floor_by_limits(log, gone, state))
end
state_save(meta, state)
redis.call('PUBLISH', wake, string.format('%d', state.last))
return answer

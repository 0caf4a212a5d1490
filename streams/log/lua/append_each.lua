-- Appends one message to each of several streams, in the plain case: nothing has to go for it and nothing speaks against it.
-- KEYS[1...] of each stream: log, meta, ids_a, ids_b, by_key
-- ARGV[1...] of each stream: wake, id, body, key, headers; key and headers may be empty
-- returns: of each the offset, negative where it is a duplicate; 0 where nothing was done and `append` has to say why
-- include: clock, state, ids
local steady, now = steady_ms(), server_ms()

local function append_one(log, meta, ids_a, ids_b, by_key, wake, id, body, key, headers)
  local state = state_load(meta)
  if not state or state.sealed == 1 or #body > state.max_message_bytes or state.ceiling > 0 or state.discard == 'new'
    or state.ttl or state.max_messages or state.max_bytes or state.max_messages_per_key then return 0 end
  local now_here = math.max(state.last_ms, now)
  local bucket, before = ids_buckets(ids_a, ids_b, state, now_here, steady)
  local known = redis.call('HGET', bucket, id) or (before and redis.call('HGET', before, id))
  if known then
    state.duplicates = state.duplicates + 1
    state_save(meta, state)
    return -known
  end
  local offset = state.last + 1
  local text, cum, size = string.format('%d', offset), state.cum + #body, #body + #key + #headers
  local entry_id, cum_text = string.format('%d-%d', offset, now_here), string.format('%d', cum)
  if size == #body then
    redis.call('XADD', log, entry_id, 'i', id, 'b', body, 'c', cum_text)
  else
    local entry = {'i', id, 'b', body, 'c', cum_text}
    if key ~= '' then entry[7], entry[8] = 'k', key end
    if headers ~= '' then entry[#entry + 1], entry[#entry + 2] = 'h', headers end
    redis.call('XADD', log, entry_id, unpack(entry))
    if key ~= '' then
      redis.call('HSET', by_key, key, text)
      state.keyed = 1
    end
  end
  if key == '' then state.loose = offset end
  redis.call('HSET', bucket, id, text)
  if size > state.widest then state.widest = size end
  state.last, state.last_ms, state.last_id, state.cum, state.crowded = offset, now_here, id, cum, 0
  state.messages, state.bytes = state.messages + 1, state.bytes + #body
  state_save(meta, state)
  redis.call('PUBLISH', wake, text)
  return offset
end

local answer = {}
for k = 1, #KEYS, 5 do
  -- A stream that is broken takes no other along; `append` then says what it is.
  local is_done, offset = pcall(append_one, KEYS[k], KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 4],
    ARGV[k], ARGV[k + 1], ARGV[k + 2], ARGV[k + 3], ARGV[k + 4])
  answer[#answer + 1] = is_done and offset or 0
end
return answer

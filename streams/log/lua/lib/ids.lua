-- Ids seen, in two buckets that take turns: an id is remembered for one window at least and for two at most,
-- and forgetting is dropping a whole bucket.

-- Returns the bucket for new ids, and for each of the given ids the offset it was stored at, or nil.
local function ids_known(ids_a, ids_b, state, now, ids)
  local window = state.dedup_window * 1000
  local turns = math.floor((now - state.ids_since) / window)
  if turns >= 2 then
    redis.call('UNLINK', ids_a, ids_b)
    state.ids_since = now
  elseif turns == 1 then
    state.ids_now = 1 - state.ids_now
    state.ids_since = state.ids_since + window
    redis.call('UNLINK', state.ids_now == 0 and ids_a or ids_b)
  end
  local current, previous = ids_a, ids_b
  if state.ids_now == 1 then current, previous = ids_b, ids_a end
  local known = redis.call('HMGET', current, unpack(ids))
  for n, offset in ipairs(redis.call('HMGET', previous, unpack(ids))) do
    known[n] = tonumber(known[n] or offset or nil)
  end
  return current, known
end

-- Notes when ids are to be remembered for longer than `before`, the state under the settings of before, says.
local function ids_settings_changed(meta, before)
  local state = state_load(meta)
  if (state.dedup_window or 0) <= (before.dedup_window or 0) then return end
  state.ids_widened = state_now(state)
  state_save(meta, state)
end

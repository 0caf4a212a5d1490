-- Ids seen, in two buckets that take turns: an id is remembered for one window at least and for two at most,
-- and forgetting is dropping a whole bucket.

-- Returns the bucket for new ids, and the one before, or nil where nothing is in it.
local function ids_buckets(ids_a, ids_b, state, now)
  local window = state.dedup_window * 1000
  local turns = math.floor((now - state.ids_since) / window)
  if turns >= 2 then
    redis.call('UNLINK', ids_a, ids_b)
    state.ids_since, state.ids_before = now, 0
  elseif turns == 1 then
    state.ids_now, state.ids_before = 1 - state.ids_now, 1
    state.ids_since = state.ids_since + window
    redis.call('UNLINK', state.ids_now == 0 and ids_a or ids_b)
  end
  local current, before = ids_a, ids_b
  if state.ids_now == 1 then current, before = ids_b, ids_a end
  return current, state.ids_before == 1 and before or nil
end

-- Returns the bucket for new ids, and for each of the given ids the offset it was stored at, or nil.
local function ids_known(ids_a, ids_b, state, now, ids)
  local current, before = ids_buckets(ids_a, ids_b, state, now)
  local known = redis.call('HMGET', current, unpack(ids))
  local older = before and redis.call('HMGET', before, unpack(ids)) or {}
  for n = 1, #ids do known[n] = tonumber(known[n] or older[n] or nil) end
  return current, known
end

-- Notes when ids are to be remembered for longer than `before`, the state under the settings of before, says.
local function ids_settings_changed(meta, before)
  local state = state_load(meta)
  if (state.dedup_window or 0) <= (before.dedup_window or 0) then return end
  state.ids_widened = state_now(state)
  state_save(meta, state)
end

-- Ids seen, in two buckets that take turns: an id is remembered for one window at least and for two at most,
-- and forgetting is dropping a whole bucket. Windows are of the steady clock, which no jump of the server's moves.

local IDS_ASTRAY_MS = 1000

-- Notes that the bucket for new ids was begun at a time of the steady clock; `ids_since` is the stream's own time of then.
local function ids_begin(state, begun, steady, now)
  -- Where the stream's time waits for the wall clock, what was stored before bears it as well.
  state.ids_since = now > state.last_ms and begun + now - steady or now + 1
  state.ids_ahead = state.ids_since - begun
end

-- Returns the bucket for new ids, and the one before, or nil where nothing is in it.
local function ids_buckets(ids_a, ids_b, state, now, steady)
  local window, begun = state.dedup_window * 1000, state.ids_since - state.ids_ahead
  local turns = math.floor((steady - begun) / window)
  if turns >= 2 then
    redis.call('UNLINK', ids_a, ids_b)
    ids_begin(state, steady, steady, now)
    state.ids_before = 0
  elseif turns == 1 then
    state.ids_now, state.ids_before = 1 - state.ids_now, 1
    ids_begin(state, begun + window, steady, now)
    redis.call('UNLINK', state.ids_now == 0 and ids_a or ids_b)
  elseif steady < begun - IDS_ASTRAY_MS then
    -- The steady clock began anew, and earlier: what is remembered is so for one window more.
    state.ids_ahead = state.ids_since - steady
  end
  local current, before = ids_a, ids_b
  if state.ids_now == 1 then current, before = ids_b, ids_a end
  return current, state.ids_before == 1 and before or nil
end

-- Returns the bucket for new ids, and for each of the given ids the offset it was stored at, or nil.
local function ids_known(ids_a, ids_b, state, now, steady, ids)
  local current, before = ids_buckets(ids_a, ids_b, state, now, steady)
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

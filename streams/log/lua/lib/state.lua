-- A stream's counters and settings, as one table of numbers and texts, unset settings nil. The meta hash holds each as
-- one field (MessagePack): counters as an array, whose order streams.log.meta knows too, settings as a map. Twenty
-- fields of their own cost five times as much to read and to write.

-- Settings that were read, as metatables, by their text: they seldom change. Nobody may write into them.
local SETTINGS_KEPT = 1000
local settings_kept, settings_count = {}, 0

local function settings_read(packed)
  local settings = settings_kept[packed]
  if settings then return settings end
  if settings_count >= SETTINGS_KEPT then settings_kept, settings_count = {}, 0 end
  settings = {__index = cmsgpack.unpack(packed)}
  settings_kept[packed], settings_count = settings, settings_count + 1
  return settings
end

-- Returns nil when there is no such stream.
local function state_load(meta)
  local packed = redis.call('HMGET', meta, 'settings', 'counters')
  if not packed[1] then return nil end
  local held = packed[2] and cmsgpack.unpack(packed[2]) or {}
  local state = {last = held[1] or 0, last_ms = held[2] or 0, last_id = held[3] or '', cum = held[4] or 0,
    messages = held[5] or 0, bytes = held[6] or 0, floor = held[7] or 1, floor_cum = held[8] or 0,
    committed = held[9] or 0, archived = held[10] or 0, purged = held[11] or 0, held_since = held[12] or 0,
    duplicates = held[13] or 0, widest = held[14] or 0, ids_now = held[15] or 0, ids_since = held[16] or 0,
    ceiling = held[17] or 0, hidden = held[18] or 0, indexed = held[19] or 0,
    indexed_for = held[20] or 0, removals = held[21] or 0, passed = held[22] or 0, turn = held[23] or 0,
    kept = held[24] or 0, crowded = held[25] or 0, ids_widened = held[26] or 0, ids_before = held[27] or 1,
    returns = held[28] or 0, keyed = held[29] or (packed[2] and 1 or 0), owed = held[30] or 0,
    by_hand = held[31] or 0, by_hand_bytes = held[32] or 0, loose = held[33] or -1, keys_from = held[34] or 0,
    missed = held[35] or 0, ids_ahead = held[36] or 0}
  -- Nobody noted it, or somebody of the version before has written since, who knows nothing of it.
  if state.loose < 0 then state.loose = state.last end
  -- What a later version keeps beyond these stays as it is, while hosts of both work.
  if held[37] ~= nil then state.later = {unpack(held, 37)} end
  state.packed = packed[2]
  setmetatable(state, settings_read(packed[1]))
  -- From here on the index of messages by key would no longer be kept up.
  if not state.max_messages_per_key then state.indexed = 0 end
  if state.retention ~= 'interest' then state.passed, state.turn = 0, 0 end
  return state
end

-- Writes the counters if they changed.
local function state_save(meta, state)
  local packed = cmsgpack.pack({state.last, state.last_ms, state.last_id, state.cum, state.messages, state.bytes,
    state.floor, state.floor_cum, state.committed, state.archived, state.purged, state.held_since, state.duplicates,
    state.widest, state.ids_now, state.ids_since, state.ceiling, state.hidden, state.indexed,
    state.indexed_for, state.removals, state.passed, state.turn, state.kept,
    state.crowded, state.ids_widened, state.ids_before, state.returns, state.keyed, state.owed,
    state.by_hand, state.by_hand_bytes, state.loose, state.keys_from, state.missed, state.ids_ahead,
    unpack(state.later or {})})
  if packed ~= state.packed then redis.call('HSET', meta, 'counters', packed) end
  state.packed = packed
end

-- Counts what a person took away, or, below zero, brought back: what else is gone, retention removed.
local function state_by_hand(state, messages, bytes)
  state.by_hand, state.by_hand_bytes = state.by_hand + messages, state.by_hand_bytes + bytes
end

-- The server's time in unix ms, never running backwards within a stream.
local function state_now(state) return math.max(state.last_ms, server_ms()) end

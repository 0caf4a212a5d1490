-- How near the limits of a stream are to what a group has not done. Needs the includes clock, state, gone, floor, group and runs;
-- keys are one table: log, gone, pending, runs, replayed, parked.

local EDGE_LOOKED = 100

-- The oldest entry that the stream holds and that the group still needs. A replayed dead letter brought its body along and
-- does not go.
local function edge_oldest(keys, state, delivered)
  local first = math.max(delivered + 1, state.floor)
  for _, offset in ipairs(redis.call('ZRANGE', keys.pending, 0, EDGE_LOOKED - 1)) do
    if redis.call('HEXISTS', keys.replayed, offset) == 0 then
      first = math.min(first, tonumber(offset))
      break
    end
  end
  local run = runs_from(keys, 0)
  if run then first = math.min(first, math.max(run.first, state.floor)) end
  local parked = redis.call('ZRANGEBYSCORE', keys.parked, string.format('%.0f', state.floor), '+inf', 'LIMIT', 0, 1)[1]
  if parked then first = math.min(first, tonumber(parked)) end
  first = string.format('%.0f', gone_next(keys.gone, first))
  return redis.call('XRANGE', keys.log, first, '+', 'COUNT', 1)[1]
end

-- What may still come before that entry goes: ms, messages and bytes; -1 where no limit takes it.
local function edge_of(keys, state, delivered)
  local entry = edge_oldest(keys, state, delivered)
  if not entry then return -1, -1, -1 end
  local margin = state.ttl and math.max(0, entry_ms(entry) - age_cutoff(state.ttl * 1000)) or -1
  if state.discard == 'new' or not (state.max_messages or state.max_bytes) then return margin, -1, -1 end
  local messages, bytes = floor_cost(keys.log, keys.gone, state, entry_offset(entry))
  return margin, state.max_messages and math.max(0, state.max_messages - state.messages + messages) or -1,
    state.max_bytes and math.max(0, state.max_bytes - state.bytes + bytes) or -1
end

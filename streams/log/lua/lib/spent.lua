-- Messages that were delivered as often as they may be and not answered in time. Needs state, gone, floor, group and runs; keys
-- are one table: log, gone, pending, due, leases, dead, replayed.
-- What has come due is looked at once: up to group.retired_ms it was. What is due earlier after all resets that.

local SPENT_SLICE, SPENT_BYTES = 500, 4194304

-- Processes tell the time from each other by less than this.
local SPENT_MARGIN_MS = 1000

-- Where in due a call begins: behind the one that the call before ended with, where that is still there.
local function spent_from(keys, group, steady, after)
  local at = redis.call('ZSCORE', keys.due, after)
  if at and tonumber(at) > group.retired_ms and tonumber(at) <= steady then return redis.call('ZRANK', keys.due, after) + 1 end
  return redis.call('ZCOUNT', keys.due, '-inf', string.format('%.0f', group.retired_ms))
end

-- Makes dead letters of a slice, which are then to be forgotten. Returns their offsets, and after which member of due to go
-- on, -1 to begin again or 0.
local function spent_bury(keys, state, group, steady, after)
  local first, now, size, buried = spent_from(keys, group, steady, after), state_now(state), 0, {}
  local found, last = redis.call('ZRANGE', keys.due, first, first + SPENT_SLICE - 1, 'WITHSCORES'), nil
  for n = 1, #found, 2 do
    local offset, at = found[n], tonumber(found[n + 1])
    if at > steady then break end
    if size >= SPENT_BYTES then return buried, last or offset end
    local run = group.max_deliver == 1 and runs_read(offset)
    if run then
      runs_open(keys, group, run, run.first, run.last)
      return buried, '-1'
    end
    local held = lease_read(keys.leases, offset)
    local letter = held and group_is_spent(group, held) and redis.call('ZSCORE', keys.pending, offset)
      and group_remains(keys.log, keys.gone, keys.replayed, state, offset, steady - at)
    if letter then
      group_bury(keys.dead, letter, 'max_deliver', held.deliveries, now)
      group.dead_lettered, size = group.dead_lettered + 1, size + #letter[2][4]
      buried[#buried + 1] = offset
    else
      last = offset
    end
    group.retired_ms = math.max(group.retired_ms, math.min(at, steady - SPENT_MARGIN_MS) - 1)
  end
  local is_all = #found < 2 * SPENT_SLICE or tonumber(found[#found]) > steady
  if is_all then group.retired_ms = math.max(group.retired_ms, steady - SPENT_MARGIN_MS) end
  return buried, is_all and '0' or last or found[1]
end

-- Tells size and key of a page of visible messages, newest first; changes nothing.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- ARGV[1] first: the lowest offset to look at
-- ARGV[2] before: the offset above the highest, or 0 for the end
-- ARGV[3] page: most messages in one call
-- returns: the lowest offset that was looked at (first, where there are no more), last,
--   how many ever went from between others; then of each message its offset, size, and key or nothing
-- errors: OKMQ_NO_STREAM
-- flags: no-writes
-- include: state, gone, floor
local log, meta, gone = KEYS[1], KEYS[2], KEYS[3]
local first, before, page = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
if before == 0 then before = state.last + 1 end
page = math.max(1, math.min(page, math.floor(4194304 / math.max(1, state.widest))))
local told, now, went = {first, state.last, state.removals}, state_now(state), gone_looker(gone)
local low = math.max(first, state.floor)
local found = low < before and redis.call('XREVRANGE', log, before - 1, low, 'COUNT', page) or {}
for _, entry in ipairs(found) do
  local offset, fields = entry_offset(entry), entry[2]
  local is_over = fields[#fields - 1] == 'x' and tonumber(fields[#fields]) <= now
  if not is_over and not (state.hidden == 1 and went(offset)) then
    told[#told + 1], told[#told + 2] = offset, #fields[4]
    told[#told + 1] = fields[7] == 'k' and fields[8] or ''
  end
end
if #found == page then told[1] = entry_offset(found[page]) end
return told

-- Tells size and key of a page of stored messages without their bodies; changes nothing.
-- KEYS[1] log
-- KEYS[2] meta
-- ARGV[1] first: offset
-- ARGV[2] last: offset
-- ARGV[3] page: most messages in one call
-- returns: up to which offset was looked at; then of each message its offset, size, and key or nothing
-- errors: OKMQ_NO_STREAM
-- flags: no-writes
-- include: clock, state, gone, floor
local log, meta, first, last, page = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
page = math.max(1, math.min(page, math.floor(4194304 / math.max(1, state.widest))))
local found, told = redis.call('XRANGE', log, first, last, 'COUNT', page), {last}
for _, entry in ipairs(found) do
  local fields = entry[2]
  told[#told + 1], told[#told + 2] = entry_offset(entry), #fields[4]
  told[#told + 1] = fields[7] == 'k' and fields[8] or ''
end
if #found == page then told[1] = entry_offset(found[page]) end
return told

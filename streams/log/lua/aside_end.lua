-- Ends what can no longer be undone: a slice of its single messages goes physically, the rest is free to go.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] hidden
-- KEYS[5] by_key
-- KEYS[6] latest
-- KEYS[7] went
-- KEYS[8] aside
-- KEYS[9] removals
-- ARGV[1] number: of a removal that ends now, with those before it, or 0 for those whose time is over
-- ARGV[2] slice: most messages in one call
-- returns: how many have ended, 1 when done
-- errors: OKMQ_NO_STREAM
-- flags: allow-oom
-- include: clock, state, gone, floor, taken, group, removal, aside
local meta, aside, removals = KEYS[2], KEYS[8], KEYS[9]
local stream = {log = KEYS[1], gone = KEYS[3], hidden = KEYS[4], by_key = KEYS[5], latest = KEYS[6], went = KEYS[7]}
local wanted, slice = tonumber(ARGV[1]), tonumber(ARGV[2])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local now, held, over, ended = steady_ms(), aside_load(removals), {}, 0
for number, each in pairs(held) do
  local from = aside_from(stream.gone, state, each)
  -- Also those that a limit or a purge has reached.
  if number <= wanted or each['until'] <= now or not from then over[#over + 1] = number
  elseif from > each.first then
    taken_add(meta, state, each.first, from)
    aside_shorten(stream.log, state, each, from)
    redis.call('HSET', removals, number .. ':first', string.format('%.0f', each.first), number .. ':cum', string.format('%.0f', each.cum))
  end
end
table.sort(over)
for _, number in ipairs(over) do
  local record = held[number]
  -- Of single messages those that a limit has not reached may still come back.
  local is_over = number <= wanted or record['until'] <= now or record.upto > 0 or state.kept == 0
  local found, kept_runs, offsets = redis.call('ZRANGEBYSCORE', aside, number, number, 'LIMIT', 0, slice), {}, {}
  local removal = removal_begin()
  for _, member in ipairs(found) do
    local offset = tonumber(member)
    if not is_over and offset >= state.kept then break end
    offsets[#offsets + 1] = member
    local entry = redis.call('XRANGE', stream.log, offset, offset)[1]
    if entry then
      -- It is gone already and stays so; its run may now become one with its neighbours.
      local size = #entry[2][4]
      gone_return(stream.gone, kept_runs, offset, size)
      gone_add_run(stream.gone, kept_runs, state.floor, offset, offset, size)
      removal_take(removal, entry)
    end
  end
  removal_end(stream, state, removal, true)
  if #offsets > 0 then redis.call('ZREM', aside, unpack(offsets)) end
  slice = slice - #offsets
  if slice <= 0 then
    state_save(meta, state)
    return {ended, 0}
  end
  if #offsets < #found then
    record.first = tonumber(found[#offsets + 1])
    redis.call('HSET', removals, number .. ':first', string.format('%.0f', record.first))
  else
    taken_add(meta, state, record.first, aside_stop(record))
    aside_forget(removals, number)
    held[number], ended = nil, ended + 1
  end
end
aside_settle(meta, stream.gone, held, state)
state_save(meta, state)
return {ended, 1}

-- How long messages took from their publish to their acknowledgement: fields of the group's hash beside its two packed ones,
-- "<ms>" -> how many, ever. Of ms only the first five binary digits count: at most 1/16 too low. What is acknowledged lies in
-- the order of its times, so neighbours of which the first and the last took as long need no look in between; a call takes so
-- many looks, fewer where bodies are large, and between two of them half is taken to be like either. Needs the include state.

local LATENCY_LOOKS, LATENCY_BYTES = 32, 4194304

local function latency_place(ms)
  local unit = 1
  while ms >= 32 * unit do unit = unit * 2 end
  return ms - ms % unit
end

-- Counts what was acknowledged just now, in any order: stretches of offsets, each {first, last}, and offsets (texts).
local function latency_count(log, group_key, state, stretches, offsets)
  for _, offset in ipairs(offsets) do stretches[#stretches + 1] = {tonumber(offset), tonumber(offset)} end
  local upto, total, is_sorted = {}, 0, true
  for n = 2, #stretches do is_sorted = is_sorted and stretches[n - 1][1] < stretches[n][1] end
  if not is_sorted then table.sort(stretches, function(one, other) return one[1] < other[1] end) end
  for n, each in ipairs(stretches) do
    total = total + each[2] - each[1] + 1
    upto[n] = total
  end
  local now, counts = state_now(state), {}
  local looks = math.max(2, math.min(LATENCY_LOOKS, math.floor(LATENCY_BYTES / math.max(1, state.widest))))

  -- The place of the one at a position among all of them; 0 of what the stream has lost, which is not counted.
  local function look(position)
    local low, high = 1, #upto
    while low < high do
      local middle = math.floor((low + high) / 2)
      if upto[middle] < position then low = middle + 1 else high = middle end
    end
    local offset = string.format('%.0f', stretches[low][2] - upto[low] + position)
    local entry = redis.call('XRANGE', log, offset, offset)[1]
    local place = entry and string.format('%.0f', latency_place(math.max(0, now - entry_ms(entry)))) or ''
    counts[place], looks = (counts[place] or 0) + 1, looks - 1
    return place
  end

  local between = {{1, look(1), total, total > 1 and look(total) or nil}}
  local at = total > 2 and 1 or 2
  while between[at] do
    local first, slow, last, quick = unpack(between[at])
    local middle, inside = math.floor((first + last) / 2), last - first - 1
    if inside > 0 and slow ~= quick and looks > 0 then
      local place = look(middle)
      between[#between + 1], between[#between + 2] = {first, slow, middle, place}, {middle, place, last, quick}
    elseif inside > 0 then
      local half = math.floor(inside / 2)
      counts[slow] = counts[slow] + inside - half
      counts[quick] = counts[quick] + half
    end
    at = at + 1
  end
  for place, count in pairs(counts) do
    if place ~= '' then redis.call('HINCRBY', group_key, place, count) end
  end
end

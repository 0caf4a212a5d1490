-- How long what went waits for the history: marks of since when something waits, and below which offset all of it lay then.
-- There are at most so many within the wait, and what a mark stands for goes that part of it early: so each message waits for
-- as long as all others, and none for longer than it is told to.

local WAIT_MARKS = 12

-- Below which offset everything has waited for long enough, free where nothing has; notes what lies below upto and waits now.
local function wait_over(meta, state, free, upto, hold_ms)
  local now, step, over = steady_ms(), hold_ms / WAIT_MARKS, free
  local packed = redis.call('HGET', meta, 'waits')
  local held, marks = packed and cmsgpack.unpack(packed) or {}, {}
  local newest = #held - 1
  if newest < 1 or (upto > held[newest + 1] and now - held[newest] >= step) then
    held[#held + 1], held[#held + 2] = now, upto
  end
  for n = 1, #held, 2 do
    local since, below = held[n], held[n + 1]
    if below > free then
      -- One whose time is over stands for those before it.
      if now - since >= hold_ms - step then over, marks = below, {} end
      marks[#marks + 1], marks[#marks + 2] = since, below
    end
  end
  if #marks == 0 then marks = {now, upto} end
  state.held_since = marks[1]
  local again = cmsgpack.pack(marks)
  if again ~= packed then redis.call('HSET', meta, 'waits', again) end
  return over
end

-- Nothing waits any more.
local function wait_end(meta, state)
  if state.held_since > 0 then redis.call('HDEL', meta, 'waits') end
  state.held_since = 0
end

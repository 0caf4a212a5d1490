-- Notes how far the history has come; never backwards, and never for a stream that is gone.
-- KEYS[1] meta
-- ARGV[1] offset: the last one archived
-- returns: 1 when noted
-- flags: allow-oom
-- include: clock, state
local meta = KEYS[1]
local offset = tonumber(ARGV[1])

local state = state_load(meta)
if not state or state.archived >= offset then return 0 end
state.archived = offset
state_save(meta, state)
return 1

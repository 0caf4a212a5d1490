-- Raises the floor.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] hidden
-- KEYS[5] by_key
-- KEYS[6] latest
-- KEYS[7] went
-- KEYS[8] expiry
-- ARGV[1] mode: below (everything below an offset), keep (all but the newest), limits (what the settings say)
-- ARGV[2] value: the offset, or how many to keep; ignored for limits
-- returns: messages and bytes that went
-- errors: OKMQ_NO_STREAM OKMQ_SEALED OKMQ_DENIED
-- flags: allow-oom
-- include: clock, state, gone, floor, taken, removal, budget, expired
local log, meta, gone = KEYS[1], KEYS[2], KEYS[3]
local stream = {log = log, gone = gone, hidden = KEYS[4], by_key = KEYS[5], latest = KEYS[6], went = KEYS[7], expiry = KEYS[8]}
local mode, value = ARGV[1], ARGV[2]

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local by_hand = mode ~= 'limits'
if by_hand and state.sealed == 1 then return redis.error_reply('OKMQ_SEALED') end
if by_hand and state.deny_purge == 1 then return redis.error_reply('OKMQ_DENIED deny_purge') end

local target
if not by_hand then expired_make_room(stream, state) end
-- What is over by a limit goes for that, and is no part of what a person takes away.
if by_hand then raise_floor(log, gone, state, floor_by_limits(log, gone, state)) end
local first, held = state.floor, state.messages
if mode == 'below' then target = tonumber(value)
elseif mode == 'keep' then target = floor_keeping(gone, state, tonumber(value))
else target = floor_by_limits(log, gone, state) end

local messages, bytes = raise_floor(log, gone, state, target)
if by_hand then
  state_by_hand(state, messages, bytes)
  taken_add(meta, state, first, gone_trim(gone, first, state.floor))
  floor_end_aside(state, mode, tonumber(value), held, target)
end
state_save(meta, state)
return {messages, bytes}

-- Says who works for a group, a slice of them in one call; who has nothing out and was not active for long is forgotten.
-- KEYS[1] meta
-- KEYS[2] members
-- KEYS[3] acks
-- ARGV[1] cursor: 0 at first
-- ARGV[2] slice: about so many in one call
-- ARGV[3] quiet_ms: for how long one that has nothing out stays
-- returns: where to go on or 0, {consumer, messages out, unix ms of its last fetch or answer, what it acknowledged (see
--   lib/members.lua) or nothing ...}, unix ms of now
-- errors: OKMQ_NO_STREAM
-- flags: allow-oom
-- include: clock, state
local meta, members, acks, cursor, slice, quiet_ms = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], tonumber(ARGV[3])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local told, now = {}, state_now(state)
local found = redis.call('HSCAN', members, cursor, 'COUNT', slice)
for n = 1, #found[2], 2 do
  local count, at_ms = string.match(found[2][n + 1], '^(%d+):(%d+)$')
  if count == '0' and tonumber(at_ms) < now - quiet_ms then
    redis.call('HDEL', members, found[2][n])
    redis.call('HDEL', acks, found[2][n])
  else
    told[#told + 1] = {found[2][n], tonumber(count), tonumber(at_ms), redis.call('HGET', acks, found[2][n]) or ''}
  end
end
return {tonumber(found[1]), told, now}

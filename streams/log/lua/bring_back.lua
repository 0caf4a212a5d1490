-- Gives a group messages of the history as a replay brings them: with the offsets they had, to it alone, each once.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- KEYS[4] group
-- KEYS[5] pending
-- KEYS[6] due
-- KEYS[7] leases
-- KEYS[8] replayed
-- KEYS[9] turns
-- KEYS[10] runs
-- KEYS[11] parked
-- KEYS[12] parked_aside
-- KEYS[13] shelved
-- KEYS[14] brought
-- ARGV[1] wake: channel
-- ARGV[2] replay: which one
-- ARGV[3] generation: of the group; once it was moved since, nothing comes any more
-- ARGV[4] position: the offset up to which the caller knows that it is done
-- ARGV[5] given: messages that the caller knows it to have given
-- ARGV[6] passed: and to have passed over
-- ARGV[7] upto: the offset up to which it is done with the last letter
-- ARGV[8...] letters: packed as dead letters, offsets ascend; at most 1000
-- returns: position, given and passed as they are now, for how many there is room, 1 when the group is paused
-- errors: OKMQ_NO_STREAM OKMQ_NO_GROUP OKMQ_MOVED
-- include: clock, state, gone, floor, group, runs, order, again
local MOST, MOST_BYTES = 1000, 67108864

local log, meta, gone, group_key, replayed, brought = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[8], KEYS[14]
local parked, parked_aside, shelved = KEYS[11], KEYS[12], KEYS[13]
local keys = {pending = KEYS[5], due = KEYS[6], leases = KEYS[7], turns = KEYS[9], runs = KEYS[10]}
local wake, replay, generation, upto = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[7])
local position, given, passed = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

local state = state_load(meta)
if not state then return redis.error_reply('OKMQ_NO_STREAM') end
local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
if group.generation ~= generation then return redis.error_reply('OKMQ_MOVED') end
floor_settle(log, gone, meta, state)
local held = redis.call('HGET', brought, replay)
if held then
  position, given, passed = string.match(held, '^(%d+):(%d+):(%d+)$')
  position, given, passed = tonumber(position), tonumber(given), tonumber(passed)
end
local before = given
-- What waits, or is out, has its body in memory.
local most = math.max(1, math.min(MOST, math.floor(MOST_BYTES / math.max(1, state.widest))))
if group.ack ~= 'none' then most = math.min(most, group.max_ack_pending) end
local room = math.max(0, most - redis.call('HLEN', replayed))

-- Whether the group gets a message without this, has it out, or had it out when it went for a while.
local function has_it(offset)
  local entry = group_entry(log, gone, replayed, state, offset)
  if tonumber(offset) > group.delivered then return entry end
  if redis.call('ZSCORE', shelved, offset) or redis.call('ZSCORE', parked_aside, offset) then return true end
  if redis.call('ZSCORE', parked, offset) then
    if entry then return true end
    redis.call('ZREM', parked, offset) -- it waited for its key, and the stream has lost it
  end
  return group.runs > 0 and runs_hold(keys, tonumber(offset))
end

local done = true
for n = 8, #ARGV do
  local letter = cmsgpack.unpack(ARGV[n])
  local offset = string.format('%.0f', letter.offset)
  if letter.offset > position then
    if room == 0 then done = false break end
    if not has_it(offset) and group_wants(group, letter_entry(letter)) and again_join(keys, group, offset, letter.key) then
      redis.call('HSET', replayed, offset, ARGV[n])
      given, room = given + 1, room - 1
    else
      passed = passed + 1
    end
    position = letter.offset
  end
end
if done then position = math.max(position, upto) end
redis.call('HSET', brought, replay, string.format('%.0f:%.0f:%.0f', position, given, passed))
if given > before then redis.call('PUBLISH', wake, 'due') end
return {position, given, passed, room, group_paused_until(group) ~= 0 and 1 or 0}

-- Taking single messages away from between others: invisible and uncounted at once, physically gone at once, too, unless
-- the history has yet to copy them; these are "hidden" until drop.lua removes them. Needs state, gone and floor.
-- The stream's keys come as one table: log, gone, hidden, by_key, latest, went, expiry; with groups, where nobody has made
-- dead letters of what is spent before: an entry then stays until the worker has.

-- So many removals at most are kept for groups with a filter; the worker has them counted long before.
local REMOVAL_JOURNAL = 100000

-- In the index of a stream that keeps the newest of each key; NUL is in no key, so a key's members stand together.
local function latest_member(key, offset) return key .. '\0' .. string.format('%016d', offset) end

local function removal_begin() return {sums = {}, messages = 0, bytes = 0} end

-- Tells the groups with a filter, which count by key what went (see losses.lua).
local function removal_note(stream, state, removal, member)
  if removal.is_noted == nil then removal.is_noted = redis.call('EXISTS', stream.went) == 1 end
  if removal.is_noted then redis.call('ZADD', stream.went, string.format('%.0f', state.removals + removal.messages), member) end
end

local function removal_is_for_groups(stream, removal)
  if stream.groups and removal.is_kept == nil then removal.is_kept = redis.call('EXISTS', stream.groups) == 1 end
  return removal.is_kept
end

-- Takes one message away, for the history too where it is by hand. It counts unless it was taken before.
local function removal_take(stream, state, removal, entry, by_hand)
  local offset, fields = entry_offset(entry), entry[2]
  local key = fields[7] == 'k' and fields[8]
  local counted = gone_add(stream.gone, removal.sums, state.floor, offset, #fields[4])
  if counted and offset >= state.floor then
    removal.messages, removal.bytes = removal.messages + 1, removal.bytes + #fields[4]
    if key and state.max_messages_per_key then redis.call('ZREM', stream.latest, latest_member(key, offset)) end
    if key then removal_note(stream, state, removal, string.format('%.0f:%s', offset, key)) end
  end
  local is_unseen = state.archive == 1 and offset > state.archived
  if (is_unseen or removal_is_for_groups(stream, removal)) and not by_hand then
    redis.call('ZADD', stream.hidden, offset, offset)
    state.hidden = 1
    return
  end
  redis.call('XDEL', stream.log, entry[1])
  if state.hidden == 1 then redis.call('ZREM', stream.hidden, offset) end
  if key and redis.call('HGET', stream.by_key, key) == string.format('%d', offset) then
    redis.call('HDEL', stream.by_key, key)
  end
end

-- Settles the counters after the last removal_take.
local function removal_end(stream, state, removal)
  if not next(removal.sums) then return end
  gone_settle(stream.gone, removal.sums)
  state.messages, state.bytes = state.messages - removal.messages, state.bytes - removal.bytes
  state.removals = state.removals + removal.messages
  if removal.is_noted then redis.call('ZREMRANGEBYRANK', stream.went, 1, -REMOVAL_JOURNAL - 1) end
  raise_floor(stream.log, stream.gone, state, gone_next(stream.gone, state.floor))
end

-- Messages whose time is over mostly are the oldest, in a row: these go by raising the floor, however many they are. What
-- was removed for a while below it could not come back then, so not where there is any. Returns how many went.
local function removal_of_oldest(stream, state, over)
  local upto = state.floor
  while over[upto] do upto = gone_next(stream.gone, upto + 1) end
  if upto == state.floor or state.kept > 0 then return 0 end
  return (raise_floor(stream.log, stream.gone, state, upto))
end

-- Takes away messages whose own time is over; returns how many, and whether none is left to look at. slice: so many at
-- most are looked at; most: so many at most are taken from between others.
local function removal_of_expired(stream, state, now, slice, most)
  local due = redis.call('ZRANGEBYSCORE', stream.expiry, '-inf', now, 'LIMIT', 0, slice)
  if #due == 0 then return 0, true end
  local over, settled, single = {}, {}, 0
  for _, offset in ipairs(due) do over[tonumber(offset)] = true end
  local went, removal = removal_of_oldest(stream, state, over), removal_begin()
  for _, offset in ipairs(due) do
    if tonumber(offset) >= floor_or_kept(state) and single < most then
      local entry = redis.call('XRANGE', stream.log, offset, offset)[1]
      if entry then removal_take(stream, state, removal, entry) end
      single = single + 1
      settled[#settled + 1] = offset
    elseif tonumber(offset) < floor_or_kept(state) then
      settled[#settled + 1] = offset
    end
  end
  redis.call('ZREM', stream.expiry, unpack(settled))
  removal_end(stream, state, removal)
  return went + removal.messages, #settled == #due and #due < slice
end

-- Who works for a group, and how many messages each has out: members is a hash, consumer -> "<messages>:<ms of its last fetch or
-- answer>". What was replayed or given back is with nobody. A group collects what changes, by consumer, and group_save writes
-- it. Who has nothing out stays for a while (group_members.lua); where very many have, the idlest go.
local MEMBERS_IDLE, MEMBERS_PRUNED = 1000, 100

local function members_tell(group, consumer, count, at_ms)
  local told = group.told or {}
  local each = told[consumer] or {0, 0}
  told[consumer] = {each[1] + count, math.max(each[2], tonumber(at_ms) or 0)}
  group.told = told
end

-- The consumer that a lease names, or nil where nobody has the message.
local function members_of_lease(lease)
  local sequence, consumer = string.match(lease, '^%d+:(%d+):%d+:(.*)$')
  return sequence ~= '0' and consumer or nil
end

-- These offsets, which are about to be taken out of pending, are with nobody any more. One that was set aside has kept its
-- lease, but is not pending.
local function members_leave(keys, group, offsets)
  local is_all = redis.call('HLEN', keys.leases) == redis.call('ZCARD', keys.pending)
  local pending = not is_all and redis.call('ZMSCORE', keys.pending, unpack(offsets))
  local count, before = 0, nil
  for n, lease in ipairs(redis.call('HMGET', keys.leases, unpack(offsets))) do
    local consumer = lease and (is_all or pending[n]) and members_of_lease(lease) or nil
    if consumer ~= before then
      if before then members_tell(group, before, -count) end
      count, before = 0, consumer
    end
    count = count + 1
  end
  if before then members_tell(group, before, -count) end
end

-- Makes room where very many have nothing out: the idlest of these go.
local function members_prune(key)
  local idle, held = {}, redis.call('HGETALL', key)
  for n = 1, #held, 2 do
    local count, at_ms = string.match(held[n + 1], '^(%d+):(%d+)$')
    if count == '0' then idle[#idle + 1] = {held[n], tonumber(at_ms)} end
  end
  if #idle < MEMBERS_IDLE then return end
  table.sort(idle, function(one, other) return one[2] < other[2] end)
  local over = {}
  for n = 1, #idle - MEMBERS_IDLE + MEMBERS_PRUNED do over[n] = idle[n][1] end
  redis.call('HDEL', key, unpack(over))
end

-- answered_ms: now, where what is told comes of an answer.
local function members_write(key, told, answered_ms)
  local has_new = false
  for consumer, each in pairs(told) do
    local held = redis.call('HGET', key, consumer)
    local count, at_ms = string.match(held or '0:0', '^(%d+):(%d+)$')
    has_new = has_new or not held
    redis.call('HSET', key, consumer, string.format('%.0f:%.0f', count + each[1], math.max(at_ms, each[2], answered_ms or 0)))
  end
  -- All of them are looked through for every so many new ones only.
  local names = has_new and redis.call('HLEN', key) or 0
  if names >= MEMBERS_IDLE and names % MEMBERS_PRUNED == 0 then members_prune(key) end
end

-- Who works for a group, and how many messages each has out: members is a hash, consumer -> "<messages>:<ms of its last fetch or
-- answer>". What was replayed or given back is with nobody. A group collects what changes, by consumer, and group_save writes
-- it. Who has nothing out stays for a while (group_members.lua), unless they are very many.
local MEMBERS_IDLE = 1000

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

-- answered_ms: now, where what is told comes of an answer.
local function members_write(key, told, answered_ms)
  for consumer, each in pairs(told) do
    local count, at_ms = string.match(redis.call('HGET', key, consumer) or '0:0', '^(%d+):(%d+)$')
    count = count + each[1]
    if count > 0 or redis.call('HLEN', key) <= MEMBERS_IDLE then
      redis.call('HSET', key, consumer, string.format('%.0f:%.0f', count, math.max(at_ms, each[2], answered_ms or 0)))
    else
      redis.call('HDEL', key, consumer)
    end
  end
end

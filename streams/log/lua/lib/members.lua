-- Who works for a group, and how many messages each has out: members is a hash, consumer -> "<messages>:<ms of its last fetch or
-- answer>". What was replayed or given back is with nobody. A group collects what changes, by consumer, and group_save writes
-- it. Who has nothing out stays for a while (group_members.lua); where very many have, the idlest go.
-- How many each acknowledged lately is beside it, where versions before do not look: acks is a hash, consumer ->
-- "<span>:<in it>:<in the one before>", in spans of ten seconds. Of more consumers than are counted all begin anew.
local MEMBERS_IDLE, MEMBERS_PRUNED = 1000, 100
local MEMBERS_SPAN_MS, MEMBERS_RATED, MEMBERS_RATED_S = 10000, 5000, 60

-- count: how many messages more it has out; acked: how many of those that it has no more it acknowledged.
local function members_tell(group, consumer, count, at_ms, acked)
  local told = group.told or {}
  local each = told[consumer] or {0, 0, 0}
  told[consumer] = {each[1] + count, math.max(each[2], tonumber(at_ms) or 0), each[3] + (acked or 0)}
  group.told = told
end

-- The consumer that a lease names, or nil where nobody has the message.
local function members_of_lease(lease)
  local sequence, consumer = string.match(lease, '^%d+:(%d+):%d+:(.*)$')
  return sequence ~= '0' and consumer or nil
end

-- These offsets, which are about to be taken out of pending, are with nobody any more. One that was set aside has kept its
-- lease, but is not pending. are_acked: since they were acknowledged.
local function members_leave(keys, group, offsets, are_acked)
  local is_all = redis.call('HLEN', keys.leases) == redis.call('ZCARD', keys.pending)
  local pending = not is_all and redis.call('ZMSCORE', keys.pending, unpack(offsets))
  local count, before = 0, nil
  local function tell()
    if before then members_tell(group, before, -count, nil, are_acked and count) end
  end
  for n, lease in ipairs(redis.call('HMGET', keys.leases, unpack(offsets))) do
    local consumer = lease and (is_all or pending[n]) and members_of_lease(lease) or nil
    if consumer ~= before then
      tell()
      count, before = 0, consumer
    end
    count = count + 1
  end
  tell()
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

-- Who was there stays, and since when, but nobody has anything out any more; very many begin anew.
local function members_release(key)
  if redis.call('HLEN', key) > MEMBERS_IDLE + MEMBERS_PRUNED then
    redis.call('UNLINK', key)
    return
  end
  local held = redis.call('HGETALL', key)
  for n = 2, #held, 2 do held[n] = '0:' .. string.match(held[n], ':(%d+)$') end
  if #held > 0 then redis.call('HSET', key, unpack(held)) end
end

local function members_count(acks, consumer, acked, now)
  local span, held = math.floor(now / MEMBERS_SPAN_MS), redis.call('HGET', acks, consumer)
  local at, inside, before = string.match(held or '0:0:0', '^(%d+):(%d+):(%d+)$')
  at = tonumber(at)
  if span > at then
    if not held and redis.call('HLEN', acks) >= MEMBERS_RATED then redis.call('UNLINK', acks) end
    at, inside, before = span, 0, span == at + 1 and inside or 0
  end
  redis.call('HSET', acks, consumer, string.format('%.0f:%.0f:%.0f', at, inside + acked, before))
  if inside == 0 then redis.call('EXPIRE', acks, MEMBERS_RATED_S) end
end

-- answered_ms: now, where what is told comes of an answer; acks: where that may be an acknowledgement.
local function members_write(key, told, answered_ms, acks)
  local has_new = false
  for consumer, each in pairs(told) do
    local held = redis.call('HGET', key, consumer)
    local count, at_ms = string.match(held or '0:0', '^(%d+):(%d+)$')
    has_new = has_new or not held
    redis.call('HSET', key, consumer, string.format('%.0f:%.0f', count + each[1], math.max(at_ms, each[2], answered_ms or 0)))
    if acks and each[3] > 0 then members_count(acks, consumer, each[3], answered_ms) end
  end
  -- All of them are looked through for every so many new ones only.
  local names = has_new and redis.call('HLEN', key) or 0
  if names >= MEMBERS_IDLE and names % MEMBERS_PRUNED == 0 then members_prune(key) end
end

-- Turns by key: of each key one message is out, the others wait in a list behind it. Needs the include group.
-- turns is a hash: "k<key>" -> "<head>:<tail>", and of every offset in a list "<offset>" -> "<next, or empty>:<key>".
-- parked holds the offsets that wait and were never out, by offset; ready those whose turn has come.

-- So many may wait undelivered; a group that is further ahead of its busy keys reads no further.
local ORDER_AHEAD = 250000

-- The lists of these keys, to be joined and then written.
local function order_open(turns, keys)
  local order = {turns = turns, ends = {}, nodes = {}, after = {}}
  if #keys == 0 then return order end
  local names = {}
  for n, key in ipairs(keys) do names[n] = 'k' .. key end
  for n, held in ipairs(redis.call('HMGET', turns, unpack(names))) do
    if held then
      local head, tail = string.match(held, '^(%d+):(%d+)$')
      order.ends[keys[n]] = {head = head, tail = tail}
    end
  end
  return order
end

-- Puts an offset at the end of its key's list; true when it is the first of it, so that it may go out.
local function order_join(order, offset, key)
  local list = order.ends[key]
  order.nodes[offset] = ':' .. key
  if not list then
    order.ends[key] = {head = offset, tail = offset, changed = true}
    return true
  end
  order.nodes[list.tail] = offset .. ':' .. key
  list.tail, list.changed = offset, true
  return false
end

local function order_next(order, offset)
  return string.match(order.nodes[offset] or redis.call('HGET', order.turns, offset) or '', '^%d*') or ''
end

-- Gives one that has no place in the list of its key one there: behind what the key has out, before what waits and came
-- later; one that is out itself before all that waits. Offsets ascend. order.after: of each key the offset that the last one
-- was put in as, where the next one's place is looked for. True when it is the first; who got the turn and did not go out
-- gives it back.
local function order_restore(order, reader, offset, key, is_out)
  local list, before = order.ends[key], order.after[key]
  if not list or (is_out and redis.call('ZSCORE', reader.pending, list.tail)) then
    order.after[key] = offset
    return order_join(order, offset, key)
  end
  if before and not (order.nodes[before] or redis.call('HEXISTS', order.turns, before) == 1) then before = nil end
  local behind = before and order_next(order, before) or list.head
  -- What waits, or would if it came back, stands behind what is out, was out when it went, or is to be passed over.
  local function precedes(other)
    return (not is_out and tonumber(other) < tonumber(offset))
      or not (redis.call('ZSCORE', reader.parked, other) or redis.call('ZSCORE', reader.parked_aside, other))
  end
  while behind ~= '' and precedes(behind) do
    before, behind = behind, order_next(order, behind)
  end
  order.nodes[offset], order.after[key] = behind .. ':' .. key, offset
  if behind == '' then list.tail, list.changed = offset, true end
  if before then
    order.nodes[before] = offset .. ':' .. key
    return false
  end
  redis.call('ZREM', reader.ready, behind)
  list.head, list.changed = offset, true
  return true
end

local function order_write(order)
  local flat = {}
  for key, list in pairs(order.ends) do
    if list.changed then flat[#flat + 1], flat[#flat + 2] = 'k' .. key, list.head .. ':' .. list.tail end
  end
  for offset, node in pairs(order.nodes) do flat[#flat + 1], flat[#flat + 2] = offset, node end
  for first = 1, #flat, 2000 do
    redis.call('HSET', order.turns, unpack(flat, first, math.min(first + 1999, #flat)))
  end
end

-- Puts one that was out before at the end of its key's list, unless it has not left its place there; true when it may
-- go out.
local function order_rejoin(turns, offset, key)
  if redis.call('HEXISTS', turns, offset) == 1 then
    return string.match(redis.call('HGET', turns, 'k' .. key) or '', '^%d+') == offset
  end
  local order = order_open(turns, {key})
  local first = order_join(order, offset, key)
  order_write(order)
  return first
end

-- Whether the head of a list keeps its turn before one that comes back: it is out, or came back itself and is the earlier.
local function order_keeps(reader, head, offset)
  local held = redis.call('ZSCORE', reader.pending, head) and lease_read(reader.leases, head)
  if not held or held.sequence == '0' then return false end
  return tonumber(redis.call('ZSCORE', reader.due, head) or 0) > 0 or tonumber(head) < tonumber(offset)
end

-- Puts one that was out, whose turn was given on when it went, back before what waits for its key. Who got the turn and did
-- not go out since gives it back. True when it may go out. reader.returned: of each key the last that came back, as they
-- come back in order.
local function order_return(reader, offset, key)
  local turns, name = reader.turns, 'k' .. key
  local head, tail = string.match(redis.call('HGET', turns, name) or '', '^(%d+):(%d+)$')
  reader.returned = reader.returned or {}
  local before = reader.returned[key]
  reader.returned[key] = offset
  if redis.call('HEXISTS', turns, offset) == 1 then return head == offset end
  if not head then
    redis.call('HSET', turns, name, offset .. ':' .. offset, offset, ':' .. key)
    return true
  end
  if not before and order_keeps(reader, head, offset) then before = head end
  if not before then
    redis.call('ZREM', reader.ready, head)
    redis.call('ZREM', reader.due, head)
    redis.call('HSET', turns, name, offset .. ':' .. tail, offset, head .. ':' .. key)
    return true
  end
  local after = string.match(redis.call('HGET', turns, before), '^%d*')
  redis.call('HSET', turns, before, offset .. ':' .. key, offset, after .. ':' .. key)
  if after == '' then redis.call('HSET', turns, name, head .. ':' .. offset) end
  return false
end

-- These offsets are done: the next of their keys become ready. One that is done before its turn stays in its list and
-- is passed over when its turn comes. Returns how many became ready.
local function order_pass(turns, ready, offsets)
  local count = 0
  for first = 1, #offsets, 1000 do
    local nodes = redis.call('HMGET', turns, unpack(offsets, first, math.min(first + 999, #offsets)))
    local done, names, nexts = {}, {}, {}
    for n, node in ipairs(nodes) do
      if node then
        local next, key = string.match(node, '^(%d*):(.*)$')
        done[#done + 1], names[#names + 1], nexts[#nexts + 1] = offsets[first + n - 1], 'k' .. key, next
      end
    end
    local gone, moved, due = {}, {}, {}
    for n, held in ipairs(#names > 0 and redis.call('HMGET', turns, unpack(names)) or {}) do
      local head, tail = string.match(held or '', '^(%d+):(%d+)$')
      if head == done[n] then
        gone[#gone + 1] = done[n]
        if nexts[n] == '' then
          gone[#gone + 1] = names[n]
        else
          moved[#moved + 1], moved[#moved + 2] = names[n], nexts[n] .. ':' .. tail
          due[#due + 1], due[#due + 2] = nexts[n], nexts[n]
          count = count + 1
        end
      end
    end
    if #gone > 0 then redis.call('HDEL', turns, unpack(gone)) end
    if #moved > 0 then
      redis.call('HSET', turns, unpack(moved))
      redis.call('ZADD', ready, unpack(due))
    end
  end
  return count
end

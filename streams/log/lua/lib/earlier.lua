-- Groups as earlier versions stored them, a field of the hash for each number and setting. Every start publishes every
-- group, which packs them. Needs the includes state, gone, floor, members, group, runs and losses.

-- Packs such a group, if there is one; keys are those of losses.lua.
local function earlier_adopt(keys, state, key)
  local held, flat = {}, redis.call('HGETALL', key)
  for n = 1, #flat, 2 do held[flat[n]] = flat[n + 1] end
  if held.settings or not held.name then return end
  local settings = {ack = held.ack, backoff = {}, filter = {}}
  for _, name in ipairs({'ack_wait_ms', 'max_deliver', 'max_ack_pending'}) do settings[name] = tonumber(held[name]) end
  for wait in string.gmatch(held.backoff or '', '%d+') do settings.backoff[#settings.backoff + 1] = tonumber(wait) end
  for pattern in string.gmatch(held.filter or '', '[^\n]+') do settings.filter[#settings.filter + 1] = pattern end
  redis.call('DEL', key)
  group_make(key, cmsgpack.pack(settings), tonumber(held.delivered), tonumber(held.ordered or 0), 0, 0)
  local group = group_load(key)
  for name in pairs(group) do group[name] = tonumber(held[name]) or group[name] end
  -- One that was made when losses were not yet counted has another number of them.
  if not held.missed then
    group.missed = tonumber(held.lost or 0)
    losses_begin(keys, state, group)
  end
  group.tallied = nil
  group_save(key, group)
end

-- Remembers what went for a while while it was out, where it went before that was kept up.
local function earlier_remember(keys)
  local held = redis.call('HLEN', keys.leases)
  if held == redis.call('ZCARD', keys.pending) + redis.call('ZCARD', keys.shelved) then return end
  for _, offset in ipairs(redis.call('HKEYS', keys.leases)) do
    if not redis.call('ZSCORE', keys.pending, offset) then redis.call('ZADD', keys.shelved, offset, offset) end
  end
end

-- Counts who has what of a group in flight, where it was made before that was kept up.
local function earlier_tally(keys, group)
  if group.tallied then return end
  group.tallied = 1
  for _, member in ipairs(redis.call('ZRANGE', keys.runs, 0, -1)) do
    local run = runs_read(member)
    members_tell(group, run.consumer, run.last - run.first + 1, run.at_ms)
  end
  for _, offset in ipairs(redis.call('ZRANGE', keys.pending, 0, -1)) do
    local held = lease_read(keys.leases, offset)
    if held and held.sequence ~= '0' then members_tell(group, held.consumer, 1, held.at_ms) end
  end
end

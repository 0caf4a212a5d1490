-- Publishes a stream's settings; counters are left as they are, and start at nothing for a new stream.
-- KEYS[1] log
-- KEYS[2] meta
-- KEYS[3] gone
-- ARGV[1...] pairs: field, value; an empty value takes the field away
-- returns: 1 when the stream is new here, else 0
-- flags: allow-oom
-- include: clock, state, gone, floor, ids
local log, meta, gone = KEYS[1], KEYS[2], KEYS[3]

local new = redis.call('EXISTS', meta) == 0
local before = floor_settle_before(log, gone, meta)
for n = 1, #ARGV, 2 do
  if ARGV[n + 1] == '' then redis.call('HDEL', meta, ARGV[n]) else redis.call('HSET', meta, ARGV[n], ARGV[n + 1]) end
end
-- Streams of before counters and settings were packed have a field for each.
if redis.call('HEXISTS', meta, 'last') == 1 then
  local state, adopted = state_load(meta), {}
  for name, value in pairs(state) do
    adopted[name] = redis.call('HGET', meta, name) or value
    if type(value) == 'number' then adopted[name] = tonumber(adopted[name]) end
    redis.call('HDEL', meta, name)
  end
  state_save(meta, adopted)
  redis.call('HDEL', meta, 'ttl', 'max_messages', 'max_bytes', 'discard', 'max_message_bytes', 'dedup_window', 'archive',
    'deny_delete', 'deny_purge', 'sealed')
end
if before then ids_settings_changed(meta, before) end
return new and 1 or 0

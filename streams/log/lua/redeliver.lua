-- Moves the time at which deliveries come again: at once or after a delay (nack), or their whole wait anew (working).
-- KEYS[1] group
-- KEYS[2] pending
-- KEYS[3] due
-- KEYS[4] leases
-- ARGV[1] wake: channel
-- ARGV[2] steady: the store's steady clock in ms
-- ARGV[3] delay_ms: until it comes again; empty restarts the clock of its delivery
-- ARGV[4] mode: offsets or leases
-- ARGV[5...] values: offsets or leases
-- returns: how many it applied to
-- errors: OKMQ_NO_GROUP OKMQ_LEASE_LOST
-- flags: allow-oom
-- include: state, gone, floor, group
local group_key, pending, due, leases = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local wake, steady, delay_ms, mode = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

local group = group_load(group_key)
if not group then return redis.error_reply('OKMQ_NO_GROUP') end
group.ack = 'explicit' -- a cumulative group's nack is of the message named, not of everything before it
local values = {}
for n = 5, #ARGV do values[n - 4] = ARGV[n] end
local offsets, lost = group_targets(group, pending, leases, mode, values)
if not offsets then return redis.error_reply('OKMQ_LEASE_LOST ' .. lost) end

for _, offset in ipairs(offsets) do
  local wait = delay_ms or group_wait_ms(group, lease_read(leases, offset).deliveries)
  -- At once is at once for everybody, also for a process whose clock is some milliseconds behind.
  redis.call('ZADD', due, wait > 0 and steady + wait or 0, offset)
end
if #offsets > 0 and delay_ms then redis.call('PUBLISH', wake, 'due') end
return #offsets

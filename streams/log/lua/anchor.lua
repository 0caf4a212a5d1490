-- Writes an anchor of a chain of events, and forgets the oldest beyond so many; also on a full server.
-- KEYS[1] anchors
-- ARGV[1] event: its id
-- ARGV[2] member: the event's id and hash
-- ARGV[3] kept: how many
-- returns: 1 when it is new, else 0
-- flags: allow-oom
local anchors = KEYS[1]
local event, member, kept = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])

local added = redis.call('ZADD', anchors, event, member)
redis.call('ZREMRANGEBYRANK', anchors, 0, -kept - 1)
return added

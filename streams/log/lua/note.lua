-- Leaves a note for the worker, and has what was begun done: what frees a full server is put on record there, too.
-- KEYS[1] notes
-- KEYS[2] what was begun
-- ARGV[1] note: JSON
-- ARGV[2] begun: its member, empty where the note stands alone
-- returns: the note's id
-- flags: allow-oom
if ARGV[2] ~= '' then redis.call('ZREM', KEYS[2], ARGV[2]) end
return redis.call('XADD', KEYS[1], '*', 'note', ARGV[1])

-- Leaves a note of what was done to messages, for the worker: what frees a full server is put on record there, too.
-- KEYS[1] notes
-- ARGV[1] note: JSON
-- returns: the note's id
-- flags: allow-oom
return redis.call('XADD', KEYS[1], '*', 'note', ARGV[1])

-- Notes that the server's wall clock was set, where nobody has noted it meanwhile, and from when on.
-- KEYS[1] skew
-- KEYS[2] jumps
-- ARGV[1] held: by how much the wall clock was known to be ahead of the steady one, ms
-- ARGV[2] fresh: by how much it is now
-- ARGV[3] most: so many jumps are kept; what was before them counts as the least of it
-- returns: 1 when noted
-- flags: allow-oom
-- include: clock
local skew, jumps = KEYS[1], KEYS[2]
local held, fresh, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

if (redis.call('GET', skew) or '0') ~= held then return 0 end
local journal, from = {}, steady_ms()
for number in string.gmatch(redis.call('GET', jumps) or '0 0', '%S+') do journal[#journal + 1] = tonumber(number) end
-- A version before notes by how much, and not when.
for _, ahead in ipairs({tonumber(held), fresh}) do
  if journal[#journal] ~= ahead then journal[#journal + 1], journal[#journal + 2] = from, ahead end
end
while #journal > 2 * most do
  journal = {0, math.min(journal[2], journal[4]), unpack(journal, 5)}
end
for n = 1, #journal do journal[n] = string.format('%.0f', journal[n]) end
redis.call('SET', skew, string.format('%.0f', fresh))
redis.call('SET', jumps, table.concat(journal, ' '))
return 1

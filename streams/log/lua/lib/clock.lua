-- What time it is. Callers bring the steady time with every call (library.told), as streams.log.clock writes it: "<ms>", or
-- "<ms> <from> <ahead> <from> <ahead> …" where the server's wall clock was ever set: from which steady ms on it was how many
-- ms ahead of the steady clock, in order; the first holds for all before, the last now.
-- Nothing is over early for it: see age_cutoff, and streams.log.clock for those who decide without a script.

-- So far the two clocks may be apart from what is noted for the server's to be taken as the better one (clock.STEP_MS).
local CLOCK_STEP_MS, CLOCK_NEVER_SET = 250, {0, 0}

-- What was noted, by its text: it seldom changes.
local CLOCK_KEPT = 100
local clock_kept, clock_count = {}, 0

local function clock_journal(text)
  local journal = clock_kept[text]
  if journal then return journal end
  if clock_count >= CLOCK_KEPT then clock_kept, clock_count = {}, 0 end
  journal = {}
  for number in string.gmatch(text, '%S+') do journal[#journal + 1] = tonumber(number) end
  clock_kept[text], clock_count = journal, clock_count + 1
  return journal
end

-- The server's time in unix ms, the same all through a call.
local function server_ms()
  if not library.server_ms then
    local time = redis.call('TIME')
    library.server_ms = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return library.server_ms
end

local function clock_read()
  local steady, journal = tonumber(library.told), CLOCK_NEVER_SET
  if not steady then
    local ms, text = string.match(library.told, '^(%d+) (.*)$')
    steady, journal = tonumber(ms), clock_journal(text)
  end
  local server, noted = server_ms(), journal[#journal]
  if math.abs(server - noted - steady) <= CLOCK_STEP_MS then
    library.steady_ms, library.ahead_ms = server - noted, noted
  else
    -- Somebody has set the server's clock, and nobody has noted it yet.
    library.steady_ms, library.ahead_ms = steady, server - steady
  end
  library.journal = journal
end

-- The steady time in ms: with what is noted taken off, the server's.
local function steady_ms()
  if not library.steady_ms then clock_read() end
  return library.steady_ms
end

-- Up to which timestamp messages are over that live for so long. A timestamp is not below the steady time of its publish and by
-- how much the wall clock was ahead then; the least that it was ahead within that time makes nothing go early.
local function age_cutoff(ttl_ms)
  local since = steady_ms() - ttl_ms
  local least, journal = library.ahead_ms, library.journal
  for n = #journal, 2, -2 do
    least = math.min(least, journal[n])
    if journal[n - 1] <= since then break end
  end
  return since + least
end

-- Begins the library. A function of the server looks every global name up by way of other tables, which made a batch of
-- a thousand a sixth slower than a script; locals cost nothing. Names are there only once a function runs.

-- register, which makes a function known; told, what the caller said of the time, the last argument of each call, and what this
-- one made of it (see clock.lua); processor_s, which tells the seconds of processor time that the server has used.
local library = {register = redis.register_function}

local function library_names()
  return redis, string, math, table, cjson, cmsgpack, ipairs, pairs, next, type, tonumber, unpack, setmetatable, pcall
end

local redis, string, math, table, cjson, cmsgpack, ipairs, pairs, next, type, tonumber, unpack, setmetatable, pcall

local function library_begin(arguments)
  library.told, arguments[#arguments] = arguments[#arguments], nil
  library.server_ms, library.steady_ms = nil, nil
  if redis then return end
  redis, string, math, table, cjson, cmsgpack, ipairs, pairs, next, type, tonumber, unpack, setmetatable, pcall = library_names()
  -- Some do not tell their functions (Redis 7.0).
  local is_told, clock = pcall(function() return os.clock end)
  library.processor_s = is_told and clock or nil
end

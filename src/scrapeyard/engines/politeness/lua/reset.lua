-- Makes a site well again: closes its breaker, forgets slow-downs, latency and how long it is closed.
--
-- KEYS     1 standing (see site.lua)
-- returns  the view, or nothing where nothing is known of the site
--
-- A script, because a worker may report between reading and writing.

if redis.call('EXISTS', KEYS[1]) == 0 then
  return false
end
local s = load(KEYS[1])
advance(s)
s.at = math.min(s.at, now)
s.slow, s.was, s.step, s.latency, s.usual, s.timed, s.row = 0, 0, 0, 0, 0, 0, 0
s.window, s.probe, s.is_down = '', '', false
keep(KEYS[1], s)
return view(s)

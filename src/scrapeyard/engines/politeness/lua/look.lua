-- How a site stands, for people. Changes nothing.
--
-- KEYS     1 standing, 2 seats, 3 alive, 4 sites, 5 places (see site.lua)
-- ARGV     1 site
-- returns  JSON, or nothing where nothing is known of the site

if redis.call('EXISTS', KEYS[1]) == 0 then
  return false
end
local s = load(KEYS[1])
advance(s)
local force = in_force(s)
local seats = redis.call('ZCARD', KEYS[2])
for _, ticket in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now)) do
  if redis.call('ZSCORE', KEYS[2], ticket) then
    seats = seats - 1
  end
end
local waiting = force > 0 and math.max(0, math.ceil(s.arrival - s.burst - s.clock - #s.holes)) or 0
local _, failures = string.gsub(s.window, '1', '')
if s.concurrency > 0 then
  waiting = waiting + math.max(0, seats - s.concurrency)
end
return cjson.encode({
  rate = force,
  slowed = s.slow > 0,
  closed_seconds = math.max(0, s.at - now),
  waiting = waiting,
  in_flight = s.concurrency > 0 and math.min(seats, s.concurrency) or -1,
  is_down = s.is_down,
  breaker_seconds = s.is_down and math.max(0, s.down_until - now) or 0,
  recent = #s.window,
  failures = failures,
  timed = s.timed,
  latency_seconds = s.latency,
  requests_a_second = a_second(s),
  seen_at = tonumber(redis.call('ZSCORE', KEYS[4], ARGV[1]) or 0)
})

-- Takes the next place in a site's line, or says how a ticket that waits for a seat stands.
--
-- KEYS     1 standing, 2 seats, 3 alive, 4 sites, 5 places (see site.lua)
-- ARGV     1 site, 2 ticket, 3 seconds that the caller would wait,
--          4 rate, 5 burst, 6 concurrency, 7 crawl rate
-- returns  {refused, seconds, place, is probe, view}: refused is '', 'down' or 'late'; seconds to wait, or after which
--          to come back; place is '' where there is none
--
-- One script, because the breaker, the seat and the place are had together or not at all.

local site, ticket, within = ARGV[1], ARGV[2], tonumber(ARGV[3])
local rate, burst, concurrency, crawl = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local s = load(KEYS[1])

local function answer(refused, seconds, place, is_probe)
  if refused ~= '' then
    release(ticket)
    if s.probe == ticket then
      s.probe = ''
    end
  end
  keep(KEYS[1], s)
  redis.call('ZADD', KEYS[4], now, site)
  return {refused, string.format('%.17g', seconds), place and string.format('%.17g', place) or '', is_probe and 1 or 0, view(s)}
end

advance(s)
s.rate, s.burst, s.concurrency = rate, burst, concurrency
if crawl > 0 then
  s.crawl, s.crawl_until = crawl, math.max(s.crawl_until, now + CRAWL + math.min(within, MAX_CLOSED))
end
drop_dead(s)
local last = s.clock + burst + in_force(s) * within + #s.holes
if s.arrival > last then
  s.arrival = last
  while s.holes[1] and s.holes[#s.holes] > last - burst do
    table.remove(s.holes)
  end
end

local is_probe = false
if s.is_down then
  if now < s.down_until then
    return answer('down', s.down_until - now)
  end
  if s.probe ~= '' and s.probe ~= ticket and now < s.probe_until then
    return answer('down', 1)
  end
  s.probe, s.probe_until, is_probe = ticket, now + LEASE, true
end

local force = in_force(s)
if concurrency > 0 then
  if not redis.call('ZSCORE', KEYS[2], ticket) then
    s.serial = s.serial + 1
    redis.call('ZADD', KEYS[2], s.serial, ticket)
  end
  lease(ticket)
  redis.call('EXPIRE', KEYS[2], FORGET)
  local before = redis.call('ZRANK', KEYS[2], ticket) - concurrency + 1
  if before > 0 then
    local latency = s.latency > 0 and s.latency or 0.1
    local each = math.max(latency / concurrency, force > 0 and 1 / force or 0)
    local seconds = math.max(before * each, 0.01)
    return answer(seconds > within and 'late' or '', seconds, nil, is_probe)
  end
end

local wait, place = math.max(0, s.at - now), nil
if force > 0 then
  place = math.max(s.arrival, s.clock) - (burst - 1)
  wait = wait + math.max(0, place - s.clock - holes_before(s, place)) / force
end
if wait > within then
  return answer('late', wait)
end
if place then
  s.arrival = math.max(s.arrival, s.clock) + 1
  if wait > 0 then
    lease(ticket)
    redis.call('HSET', KEYS[5], ticket, string.format('%.17g', place))
    redis.call('EXPIRE', KEYS[5], FORGET)
  end
end
return answer('', wait, place, is_probe)

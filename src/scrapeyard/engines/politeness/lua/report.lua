-- Adds what one process learnt of a site since its last report, gives back what is over and renews what is not.
--
-- KEYS     1 standing, 2 seats, 3 alive, 4 sites, 5 places (see site.lua)
-- ARGV     1 site, 2 requests, 3 answered, 4 good, 5 window, 6 trailing failures, 7 throttled, 8 retry after,
--          9 sum of latencies, 10 how many, 11 how the probe went ('', ok, failed, unknown),
--          12 adapt (0 or 1), 13 least rate, 14 breaker's failures, 15 its ratio, 16 its seconds, 17 burst,
--          18 rate, 19 crawl rate (-1 both: as they are),
--          20 tickets that are over, 21 tickets to renew, 22 unused places, each as many as its number says, in a row
-- returns  the view
--
-- One script, because all workers must see the slow-down or the open breaker that any one of them caused.

local s = load(KEYS[1])
local function number(index)
  return tonumber(ARGV[index])
end
local requests, answered, good, trailing, throttled = number(2), number(3), number(4), number(6), number(7)
local timed, probed = number(10), ARGV[11]
local least_rate, burst = number(13), number(17)
local over, renewed, unused = number(20), number(21), number(22)

advance(s)
if number(18) >= 0 then
  s.rate = number(18)
  if number(19) > 0 then
    s.crawl, s.crawl_until = number(19), math.max(s.crawl_until, now + CRAWL)
  end
end

for index = 23, 22 + over do
  release(ARGV[index])
end
for index = 23 + over, 22 + over + renewed do
  if redis.call('ZSCORE', KEYS[3], ARGV[index]) then
    lease(ARGV[index])
  end
  if s.probe == ARGV[index] then
    s.probe_until = now + LEASE
  end
end
for index = 23 + over + renewed, 22 + over + renewed + unused do
  give_back(s, number(index), burst)
end
drop_dead(s)
advance(s)

s.count = s.count * math.exp(-math.max(0, now - s.counted_at) / COUNT) + requests
s.counted_at = now

if timed > 0 then
  local mean = number(9) / timed
  if s.timed == 0 then
    s.latency = mean
  else
    s.latency = s.latency + (1 - 0.8 ^ math.min(timed, 50)) * (mean - s.latency)
  end
  if s.timed < ENOUGH then
    s.usual = (s.usual * s.timed + number(9)) / (s.timed + timed)
  else
    s.usual = s.usual + (mean < s.usual and 0.1 or 0.002) * (mean - s.usual)
  end
  s.timed = s.timed + timed
end

local function reaction()
  return math.max(1, 2 * s.latency)
end

local function slow_down()
  if now - s.slowed_at < reaction() then
    return false
  end
  local before = in_force(s)
  if before == 0 then
    before = a_second(s)
  end
  if s.was == 0 then
    s.was = before
  end
  s.step = before / 20
  s.slow = math.min(before, math.max(least_rate, before / 2))
  s.arrival = math.max(s.arrival, s.clock)
  s.slowed_at, s.grown_at = now, now
  return true
end

local function speed_up()
  if s.slow == 0 or now - s.slowed_at < 2 * reaction() or now - s.grown_at < 1 or s.at > now then
    return
  end
  s.slow = s.slow + math.max(s.step, s.slow / 8)
  s.grown_at = now
  if s.slow >= (s.rate > 0 and s.rate or s.was) then
    s.slow, s.was = 0, 0
  end
end

if ARGV[12] == '1' then
  if throttled > 0 then
    slow_down()
    if number(8) > 0 then
      s.at = math.max(s.at, now + math.min(number(8), MAX_CLOSED))
    end
  elseif s.timed >= ENOUGH and timed > 0 and s.latency > math.max(SLOW_LATENCY, 4 * s.usual) then
    if slow_down() then
      s.usual = s.usual * 1.25
    end
  elseif good > 0 then
    speed_up()
  end
end

if s.is_down then
  if probed ~= '' then
    s.probe = ''
    if probed == 'failed' then
      s.down_until = now + number(16)
    elseif probed == 'ok' then
      s.is_down, s.row, s.window = false, 0, ''
    end
  end
else
  s.window = string.sub(s.window .. ARGV[5], -WINDOW)
  s.row = trailing + (trailing == answered and s.row or 0)
  local _, failures = string.gsub(s.window, '1', '')
  local share = failures / math.max(1, #s.window)
  if s.row >= number(14) or (#s.window >= ENOUGH and share >= number(15)) then
    s.is_down, s.down_until, s.probe = true, now + number(16), ''
  end
end

keep(KEYS[1], s)
if requests > 0 then
  redis.call('ZADD', KEYS[4], now, ARGV[1])
  redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', now - DAY)
  redis.call('ZREMRANGEBYRANK', KEYS[4], 0, -KNOWN - 1)
  redis.call('EXPIRE', KEYS[4], DAY)
end
return view(s)

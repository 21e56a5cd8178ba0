-- What every script of the gate begins with: a site's standing, as one value, and its arithmetic.
--
-- {prefix}:site:{site}        MessagePack map: the standing. Fields as in politeness/state.py, where each is explained
-- {prefix}:site:{site}:seats  sorted set: ticket -> number of asking; the first `concurrency` are in flight
-- {prefix}:site:{site}:alive  sorted set: ticket -> end of its lease, Unix seconds
-- {prefix}:site:{site}:places hash: ticket -> its place, of those that wait; given back when the lease ends
-- {prefix}:sites              sorted set: site -> when it was last asked for, Unix seconds
--
-- All times are the server's, so that workers whose clocks differ agree. All keys expire by themselves.
-- The numbers and rules below are those of state.py; one contract suite runs on both.

local WINDOW, ENOUGH, LEASE, COUNT, FORGET = 40, 20, 10, 5, 7200
local SLOW_LATENCY, MAX_CLOSED, CRAWL, KNOWN, DAY, HOLES = 1, 3600, 10, 10000, 86400, 1000

local clock_now = redis.call('TIME')
local now = tonumber(clock_now[1]) + tonumber(clock_now[2]) / 1000000

local function load(key)
  local kept = redis.call('GET', key)
  if kept then
    local s = cmsgpack.unpack(kept)
    s.holes = s.holes or {}
    return s
  end
  return {
    born = now, at = now, clock = 0, arrival = 0, rate = 0, burst = 1, concurrency = 0, crawl = 0, crawl_until = 0,
    slow = 0, was = 0, step = 0, slowed_at = 0, grown_at = 0, row = 0, window = '', is_down = false, down_until = 0,
    probe = '', probe_until = 0, latency = 0, usual = 0, timed = 0, count = 0, counted_at = now, serial = 0, holes = {}
  }
end

local function keep(key, s)
  local ahead = math.max(s.at, s.is_down and s.down_until or 0) - now
  redis.call('SET', key, cmsgpack.pack(s), 'EX', math.ceil(FORGET + math.max(0, ahead)))
end

local function in_force(s)
  local least = 0
  for _, rate in ipairs({s.rate, s.crawl, s.slow}) do
    if rate > 0 and (least == 0 or rate < least) then
      least = rate
    end
  end
  return least
end

local function advance(s)
  if s.crawl > 0 and now >= s.crawl_until then
    s.crawl = 0
  end
  if now > s.at then
    s.clock = s.clock + (now - s.at) * in_force(s)
    s.at = now
  end
  while s.holes[1] and s.holes[1] <= s.clock do
    table.remove(s.holes, 1)
    s.clock = s.clock + 1
  end
end

local function holes_before(s, place)
  local found = 0
  while s.holes[found + 1] and s.holes[found + 1] < place do
    found = found + 1
  end
  return found
end

local function give_back(s, place, burst)
  if place <= s.clock - burst or #s.holes >= HOLES then
    return
  end
  table.insert(s.holes, holes_before(s, place) + 1, place)
  while s.holes[1] and s.holes[#s.holes] == s.arrival - 1 - (burst - 1) do
    table.remove(s.holes)
    s.arrival = s.arrival - 1
  end
end

local function a_second(s)
  local age = math.max(now - s.born, 1)
  local count = s.count * math.exp(-math.max(0, now - s.counted_at) / COUNT)
  return count / (COUNT * (1 - math.exp(-age / COUNT)))
end

local function release(ticket)
  redis.call('ZREM', KEYS[2], ticket)
  redis.call('ZREM', KEYS[3], ticket)
  redis.call('HDEL', KEYS[5], ticket)
end

local function drop_dead(s)
  for _, ticket in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now)) do
    local place = redis.call('HGET', KEYS[5], ticket)
    if place then
      give_back(s, tonumber(place), s.burst)
    end
    release(ticket)
  end
end

local function lease(ticket)
  redis.call('ZADD', KEYS[3], now + LEASE, ticket)
  redis.call('EXPIRE', KEYS[3], FORGET)
end

-- How the line stands, for a process to reckon with until it hears again. Numbers as text: a reply would cut them.
local function view(s)
  return {
    string.format('%.17g', s.clock), string.format('%.17g', math.max(0, s.at - now)),
    string.format('%.17g', in_force(s)), s.is_down and string.format('%.17g', math.max(0, s.down_until - now)) or '',
    cmsgpack.pack(s.holes)
  }
end

-- Counts a call of a client, unless its rate or concurrency is used up.
--
-- KEYS     1 bucket: a hash of tokens and the time at which they were counted
--          2 held: a sorted set of the calls that run, by the time at which their lease ends
-- ARGV     1 rate, 2 burst, 3 concurrency, 4 ticket ('': the call holds no place), 5 seconds of a lease
-- returns  {refused, seconds to wait, tokens left}
--
-- One script, because a token and a place are had together or not at all. The time is the server's: clocks of gateways
-- differ.

local rate, burst, concurrency = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local ticket, lease = ARGV[4], tonumber(ARGV[5])
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1e6
local kept = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = burst
if kept[1] then
  tokens = math.min(burst, tonumber(kept[1]) + math.max(0, now - tonumber(kept[2])) * rate)
end

if concurrency > 0 and ticket ~= '' then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
  if redis.call('ZCARD', KEYS[2]) >= concurrency then
    return {'concurrency', '1', '0'}
  end
end
if rate > 0 then
  if tokens < 1 then
    return {'rate', string.format('%.6f', (1 - tokens) / rate), '0'}
  end
  tokens = tokens - 1
  redis.call('HSET', KEYS[1], 'tokens', string.format('%.17g', tokens), 'at', string.format('%.17g', now))
  redis.call('EXPIRE', KEYS[1], math.ceil(burst / rate) + 60)
end
if concurrency > 0 and ticket ~= '' then
  redis.call('ZADD', KEYS[2], now + lease, ticket)
  redis.call('EXPIRE', KEYS[2], math.ceil(lease) + 60)
end
return {'', '0', string.format('%.6f', tokens)}

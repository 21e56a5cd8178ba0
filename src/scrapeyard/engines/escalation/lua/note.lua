-- Count tries of ways at one site, after what was counted before has faded. Atomic, as many workers note at once.
-- KEYS[1]  hash of the site: way -> "successes failures cost used_at"
-- ARGV     now (s), half-life (s), time to live (ms), most counted, most ways, then for each way: name, successes,
--          failures, cost
local now, half_life, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
for at = 6, #ARGV, 4 do
  local way = ARGV[at]
  local before = redis.call('HGET', KEYS[1], way)
  if before or redis.call('HLEN', KEYS[1]) < tonumber(ARGV[5]) then
    local good, bad = 0, 0
    if before then
      local g, b, used = string.match(before, '^(%S+) (%S+) %S+ (%S+)$')
      local share = 0.5 ^ (math.max(0, now - tonumber(used)) / half_life)
      good, bad = tonumber(g) * share, tonumber(b) * share
    end
    good = math.min(most, good + tonumber(ARGV[at + 1]))
    bad = math.min(most, bad + tonumber(ARGV[at + 2]))
    redis.call('HSET', KEYS[1], way, string.format('%.6f %.6f %s %.3f', good, bad, ARGV[at + 3], now))
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1

-- Keep a clearance. Too many for one site (a host for each page, say) are all let go: they are won again when needed.
-- KEYS[1]  hash of the site: "host exit" -> "id json"
-- ARGV     field, value, time to live (ms), most clearances
if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4]) and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  redis.call('DEL', KEYS[1])
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return 1

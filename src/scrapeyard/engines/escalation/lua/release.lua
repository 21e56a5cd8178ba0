-- Give a claim back, if it is still ours.
-- KEYS[1]  the claim
-- ARGV     our token
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0

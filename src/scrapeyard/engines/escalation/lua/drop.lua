-- Let a clearance go, unless another has taken its place meanwhile.
-- KEYS[1]  hash of the site: "host exit" -> "id json"
-- ARGV     field, id
local held = redis.call('HGET', KEYS[1], ARGV[1])
if held and string.sub(held, 1, #ARGV[2] + 1) == ARGV[2] .. ' ' then
  return redis.call('HDEL', KEYS[1], ARGV[1])
end
return 0

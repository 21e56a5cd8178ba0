-- Gives a claim back, unless it has ended and is another's by now. ARGV: key, token
if redis.call('GET', ARGV[1]) == ARGV[2] then
  return redis.call('DEL', ARGV[1])
end
return 0

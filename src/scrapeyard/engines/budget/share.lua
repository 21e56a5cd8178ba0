-- What one process used up for a job, put beside what the others have; the sums of all.
-- One step, so that of two processes that reach for the last request only one sees that it was there.
--
-- KEYS[1]  hash: process -> "requests bytes residential_bytes milliseconds ai_tokens ai_millionths"
-- ARGV[1]  the process   ARGV[2]  its six numbers; an older process tells four   ARGV[3]  seconds to keep the hash

redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
local sums = {0, 0, 0, 0, 0, 0}
for _, told in ipairs(redis.call('HVALS', KEYS[1])) do
  local place = 1
  for number in string.gmatch(told, '%d+') do
    sums[place] = sums[place] + tonumber(number)
    place = place + 1
  end
end
return string.format('%.0f %.0f %.0f %.0f %.0f %.0f', sums[1], sums[2], sums[3], sums[4], sums[5], sums[6])

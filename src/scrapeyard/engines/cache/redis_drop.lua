-- Removes up to 500 pages of a URL or site, or of all. Returns how many; the caller comes again until there are none.
-- The layout of the keys is told in redis_put.lua.
--
-- ARGV: P, what: "u:<url>", "s:<site>" or "" for all

local P, what = ARGV[1], ARGV[2]
local BATCH = 500

local ids
if what == '' then
  ids = redis.call('ZRANGE', P .. ':used', 0, BATCH - 1)
else
  ids = redis.call('SRANDMEMBER', P .. ':' .. what, BATCH)
end
for _, id in ipairs(ids) do
  local meta = redis.call('HGET', P .. ':meta', id)
  if meta then
    local bytes, url, site = string.match(meta, '^(%d+) (%S+) (.*)$')
    redis.call('DECRBY', P .. ':bytes', bytes)
    redis.call('SREM', P .. ':u:' .. url, id)
    redis.call('SREM', P .. ':s:' .. site, id)
    redis.call('HDEL', P .. ':meta', id)
    redis.call('ZREM', P .. ':ends', id)
  end
  redis.call('ZREM', P .. ':used', id)
  if what ~= '' then
    redis.call('SREM', P .. ':' .. what, id)
  end
  redis.call('DEL', P .. ':p:' .. id)
end
return #ids

-- Keeps one page and makes room for it. Returns how many others were removed to do so.
--
-- P:p:<id>      the page, with its own expiry
-- P:meta        hash: id -> "bytes url site"
-- P:used        sorted set: id by when it was last used (ms)
-- P:ends        sorted set: id by when it expires (ms)
-- P:bytes       all pages together
-- P:u:<url>     set: ids by digest of the URL
-- P:s:<site>    set: ids by site
-- P:counts      hash: hits, misses, evicted
--
-- ARGV: P, id, url, site, now (ms), expires (ms), limit (bytes), page; a page that is "" is only removed

local P, id, url, site = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local now, expires, limit, page = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
local SWEEP = 100
-- what the indexes cost
local OVERHEAD = 512

local function remove(gone)
  local meta = redis.call('HGET', P .. ':meta', gone)
  if meta then
    local bytes, its_url, its_site = string.match(meta, '^(%d+) (%S+) (.*)$')
    redis.call('DECRBY', P .. ':bytes', bytes)
    redis.call('SREM', P .. ':u:' .. its_url, gone)
    redis.call('SREM', P .. ':s:' .. its_site, gone)
    redis.call('HDEL', P .. ':meta', gone)
    redis.call('ZREM', P .. ':used', gone)
    redis.call('ZREM', P .. ':ends', gone)
  end
  redis.call('DEL', P .. ':p:' .. gone)
end

remove(id)
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', P .. ':ends', '-inf', now, 'LIMIT', 0, SWEEP)) do
  remove(gone)
end
local size = #page + OVERHEAD
if page == '' or size > limit or expires <= now then
  return 0
end

local evicted = 0
while tonumber(redis.call('GET', P .. ':bytes') or '0') + size > limit do
  local oldest = redis.call('ZRANGE', P .. ':used', 0, 0)[1]
  if not oldest then
    -- nothing is indexed, so nothing is kept: somebody else has removed keys of ours
    redis.call('DEL', P .. ':bytes')
    break
  end
  remove(oldest)
  evicted = evicted + 1
end

redis.call('SET', P .. ':p:' .. id, page, 'PX', expires - now)
redis.call('HSET', P .. ':meta', id, size .. ' ' .. url .. ' ' .. site)
redis.call('ZADD', P .. ':used', now, id)
redis.call('ZADD', P .. ':ends', expires, id)
redis.call('INCRBY', P .. ':bytes', size)
redis.call('SADD', P .. ':u:' .. url, id)
redis.call('SADD', P .. ':s:' .. site, id)
if evicted > 0 then
  redis.call('HINCRBY', P .. ':counts', 'evicted', evicted)
end
return evicted

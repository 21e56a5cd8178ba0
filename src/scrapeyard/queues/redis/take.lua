-- Takes up to ARGV[2] entries from the first streams that have any, and removes them.
--
-- KEYS     streams `{prefix}:q:{lane}:{priority}`, the most urgent first
-- ARGV[1]  the consumer group
-- ARGV[2]  how many entries at most (the adapter allows 1000; `unpack` would fail near 8000)
-- returns  a list of {stream, id, fields}
--
-- A script, because the entries must leave the streams in the step that reads them: a taker that dies after this step
-- has lost them, one that dies before it has touched nothing, and no other taker sees a count that is half changed.
-- NOACK keeps them out of the pending list, where only blocked reads, which cannot run in a script, leave theirs.
-- A group that is missing (a new lane, or a server that came back empty) is made here, from the start of the stream.

local group, room = ARGV[1], tonumber(ARGV[2])
local taken = {}

local function read(stream)
  return redis.pcall('XREADGROUP', 'GROUP', group, 'taker', 'COUNT', room, 'NOACK', 'STREAMS', stream, '>')
end

for _, stream in ipairs(KEYS) do
  if room <= 0 then
    break
  end
  local reply = read(stream)
  if reply and reply.err and string.find(reply.err, 'NOGROUP', 1, true) then
    redis.call('XGROUP', 'CREATE', stream, group, '0', 'MKSTREAM')
    reply = read(stream)
  end
  if reply and reply.err then
    return reply
  end
  if reply then
    local ids = {}
    for _, entry in ipairs(reply[1][2]) do
      ids[#ids + 1] = entry[1]
      taken[#taken + 1] = {stream, entry[1], entry[2]}
    end
    redis.call('XDEL', stream, unpack(ids))
    room = room - #ids
  end
end

return taken

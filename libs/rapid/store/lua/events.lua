local MAX_MERGED = 200

-- Returns how many entries a stream holds, and how many it no longer holds.
local function stream_counts(key)
  if redis.call('EXISTS', key) == 0 then return 0, 0 end
  local found = {}
  local info = redis.call('XINFO', 'STREAM', key)
  for i = 1, #info, 2 do found[info[i]] = info[i + 1] end
  return found['length'], found['entries-added'] - found['length']
end

-- Returns whether a writer's stream holds events to merge or lost some, and its oldest entries. A stream that is too
-- large is shortened first, because the merge may be too slow for it. Keys: the writer's stream, removed entries by
-- writer. Arguments: writer, most bytes, most entries, entries to return.
register('pending_events', 4, function(keys, args)
  local bytes = redis.call('MEMORY', 'USAGE', keys[1], 'SAMPLES', '0')
  if bytes and bytes > tonumber(args[2]) then redis.call('XTRIM', keys[1], 'MAXLEN', '0') end
  local length, removed = stream_counts(keys[1])
  if length > tonumber(args[3]) then redis.call('XTRIM', keys[1], 'MAXLEN', args[3]) end
  local due = length > 0 or removed ~= tonumber(redis.call('HGET', keys[2], args[1]) or 0)
  return {due and 1 or 0, length > 0 and redis.call('XRANGE', keys[1], '-', '+', 'COUNT', args[4]) or {}}
end, {'allow-oom'})  -- it only removes

-- Moves entries of a writer's stream to the run's events. An entry that is no longer there was moved before. Appends an
-- event when entries are gone that were never moved. Keys: events, the writer's stream, removed entries by writer.
-- Arguments: writer, then id, who, what and details of each entry. Returns the number of moved entries, and of lost
-- ones (negative when the stream was deleted).
register('merge_events', 1 + 4 * MAX_MERGED, function(keys, args)
  local moved, now = 0, now_ms()
  for i = 2, #args - 3, 4 do
    if redis.call('XDEL', keys[2], args[i]) == 1 then
      local at = math.min(tonumber(string.match(args[i], '^%d+')), now)
      redis.call('XADD', keys[1], '*', 'who', args[i + 1], 'what', args[i + 2], 'details', args[i + 3],
                 'at', string.format('%.3f', at / 1000))
      moved = moved + 1
    end
  end
  local _, removed = stream_counts(keys[2])
  local lost = removed - moved - tonumber(redis.call('HGET', keys[3], args[1]) or 0)
  if lost ~= 0 then
    redis.call('XADD', keys[1], '*', 'who', 'controller', 'what', 'events.lost', 'details',
               cjson.encode({writer = args[1], events = lost > 0 and lost or cjson.null}))
  end
  redis.call('HSET', keys[3], args[1], string.format('%d', removed))
  return {moved, lost}
end)

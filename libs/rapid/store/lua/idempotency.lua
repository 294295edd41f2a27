local MAX_RECORDS = 1000

-- Records an idempotency key as the newest one. Returns whether it is new.
local function record_key(recorded, name, most)
  local newest = redis.call('ZRANGE', recorded, -1, -1, 'WITHSCORES')[2] or 0
  if redis.call('ZADD', recorded, 'NX', newest + 1, name) == 0 then return false end
  redis.call('ZREMRANGEBYRANK', recorded, 0, -1 - tonumber(most))
  return true
end

-- Returns the position at which to record a key, nil if it is recorded. Key: idempotency keys. Argument: name.
register('next_position', 1, function(keys, args)
  if redis.call('ZSCORE', keys[1], args[1]) then return nil end
  return (redis.call('ZRANGE', keys[1], -1, -1, 'WITHSCORES')[2] or 0) + 1
end, {'no-writes'})

-- Appends records to a series, each unless its key is recorded. Keys: idempotency keys, series. Arguments: maximum of
-- the keys, length of the series, then pairs of key and record.
register('append_once', 2 + 2 * MAX_RECORDS, function(keys, args)
  local appended = 0
  for i = 3, #args - 1, 2 do
    if record_key(keys[1], args[i], args[1]) then
      redis.call('XADD', keys[2], 'MAXLEN', '~', args[2], '*', 'v', args[i + 1])
      appended = appended + 1
    end
  end
  return appended
end)

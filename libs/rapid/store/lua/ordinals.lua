local MAX_ORDINALS = 20000

-- Gives an instance the lowest free ordinal and keeps it. Ordinals of instances without a lease become free, and the
-- instance with the highest one moves into the hole, so one instance moves for each that ends. The first branch is the
-- usual one and independent of the number of instances. Keys: ordinals, names of live instances. Argument: name.
register('claim_ordinal', 1, function(keys, args)
  local own = tonumber(redis.call('ZSCORE', keys[1], args[1]) or -1)
  local count = redis.call('ZCARD', keys[1])
  if own >= 0 and own < count and count <= redis.call('ZCARD', keys[2]) then
    return {own, count}
  end
  redis.call('ZREMRANGEBYRANK', keys[1], MAX_ORDINALS, -1)
  for _, name in ipairs(redis.call('ZRANGE', keys[1], 0, -1)) do
    if name ~= args[1] and not redis.call('ZSCORE', keys[2], name) then
      redis.call('ZREM', keys[1], name)
    end
  end
  local held = redis.call('ZRANGE', keys[1], 0, -1, 'WITHSCORES')
  count = #held / 2
  if own < 0 then
    count = count + 1
  end
  if own < 0 or own >= count then
    own = 0
    while held[2 * own + 2] and tonumber(held[2 * own + 2]) == own do
      own = own + 1
    end
    redis.call('ZADD', keys[1], own, args[1])
  end
  return {own, count}
end)

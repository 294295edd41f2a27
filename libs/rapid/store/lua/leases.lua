-- Renews an instance's lease. A sorted set holds the names of live instances by lease expiry, on the server's clock, so
-- listing them needs no scan. Each renewal removes expired names. Keys: lease, names of the kind, acknowledgement,
-- names of acknowledgements. Arguments: name, lease text, its expiry in ms, acknowledgement ('' without a pause), its
-- expiry.
register('renew_lease', 5, function(keys, args)
  local now = now_ms()
  redis.call('SET', keys[1], args[2], 'PX', args[3])
  redis.call('ZADD', keys[2], now + tonumber(args[3]), args[1])
  redis.call('ZREMRANGEBYSCORE', keys[2], '-inf', now)
  if args[4] ~= '' then
    redis.call('SET', keys[3], args[4], 'PX', args[5])
    redis.call('ZADD', keys[4], now, args[1])
  end
end)

-- Ends a lease. A clean exit acknowledges a pause; an instance that restarts ('1') is still waited for. Keys: lease,
-- names of the kind, acknowledgement, names of acknowledgements. Arguments: now, whether it restarts, key of the status
-- (only read), name, expiry of the acknowledgement.
register('end_lease', 5, function(keys, args)
  redis.call('DEL', keys[1])
  redis.call('ZREM', keys[2], args[4])
  local now = document(args[3]) or {}
  local number = now['pause'] or 0
  if number > 0 and (now['status'] == 'pausing' or now['status'] == 'paused' or now['status'] == 'operating') then
    local answer = {pause = number, quiet = args[2] == '0', gone = true, at = tonumber(args[1])}
    redis.call('SET', keys[3], cjson.encode(answer), 'PX', args[5])
    redis.call('ZADD', keys[4], args[1], args[4])
  end
end)

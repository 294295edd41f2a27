local MAX_INSTANCES = 20000  -- of one kind; more have no part in a pause
local MAX_KINDS, MAX_NAME_BYTES = 16, 256

-- Begins a pause: sets the status and enrols the live instances, unless status or record have changed. Deletes
-- acknowledgements of earlier pauses. Keys: status, pause, events. Arguments: key of the record, expected status and
-- record ('': no record), new status, its channel and name, number of the pause, now, the run's prefix, expiry of
-- acknowledgements in ms, number of kinds, kinds, then the fields of the event.
register('begin_pause', 64, function(keys, args)
  local last = 11 + tonumber(args[11])
  if last > 11 + MAX_KINDS or #table.concat(args, '', 12, last) + #args[9] > MAX_NAME_BYTES then
    error('begin_pause: at most ' .. MAX_KINDS .. ' kinds and ' .. MAX_NAME_BYTES .. ' bytes of names are allowed')
  end
  local record = redis.call('GET', args[1])
  if redis.call('GET', keys[1]) ~= args[2] or (record or '') ~= args[3] then return 0 end
  redis.call('SET', keys[1], args[4])
  redis.call('PUBLISH', args[5], args[6])
  local waited = cjson.encode({pause = tonumber(args[7]), quiet = false, at = tonumber(args[8])})
  local now = now_ms()
  for i = 12, last do
    local prefix = args[9] .. 'quiet:' .. args[i] .. ':'
    local names = args[9] .. 'quiet-names:' .. args[i]
    for _, name in ipairs(redis.call('ZRANGE', names, 0, MAX_INSTANCES - 1)) do redis.call('DEL', prefix .. name) end
    redis.call('DEL', names)
    local live = redis.call('ZRANGEBYSCORE', args[9] .. 'leases:' .. args[i], now, '+inf', 'LIMIT', 0, MAX_INSTANCES)
    for _, name in ipairs(live) do
      redis.call('SET', prefix .. name, waited, 'PX', args[10])
      redis.call('ZADD', names, now, name)
    end
  end
  redis.call('SET', keys[2], cjson.encode({number = tonumber(args[7]), asked_at = tonumber(args[8]),
                                           epoch = record and decode(record)['epoch'] or 0, overdue = false}))
  redis.call('XADD', keys[3], '*', unpack(args, last + 1))
  return 1
end)

-- Appends one event when a pause takes too long. Keys: pause, events. Arguments: number, then the fields of the event.
register('note_overdue', 64, function(keys, args)
  local pause = document(keys[1])
  if not pause or pause['overdue'] or pause['number'] ~= tonumber(args[1]) then return 0 end
  pause['overdue'] = true
  redis.call('SET', keys[1], cjson.encode(pause))
  redis.call('XADD', keys[2], '*', unpack(args, 2))
  return 1
end)

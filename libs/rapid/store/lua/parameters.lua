-- Writes a version's record and makes it the head, unless it exists with another digest or the token is not valid. The
-- change is atomic for readers of the state. Returns 'conflict', 'head', 'below' (recorded below the head), or why the
-- token is invalid. Without an epoch no token is required. Keys: versions, head, record, publisher. Arguments: version,
-- digest, record of the version, channel, epoch, fence, holder.
register('publish_version', 7, function(keys, args)
  if args[5] ~= '' then
    local why = refused(keys[3], keys[4], args[5], args[6], args[7])
    if why then return why end
  end
  local known = redis.call('HGET', keys[1], args[1])
  if known and decode(known)['digest'] ~= args[2] then return 'conflict' end
  if not known then redis.call('HSET', keys[1], args[1], args[3]) end
  local head = redis.call('GET', keys[2])
  if head and tonumber(string.match(head, '^%d+')) >= tonumber(args[1]) then return 'below' end
  redis.call('SET', keys[2], args[1] .. ':' .. args[2])
  redis.call('PUBLISH', args[4], args[1] .. ':' .. args[2])
  return 'head'
end)

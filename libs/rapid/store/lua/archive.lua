-- Adds the blob's address to a version's record. Key: versions. Arguments: version, digest, bytes.
register('record_blob', 3, function(keys, args)
  local known = redis.call('HGET', keys[1], args[1])
  if not known then return 0 end
  local record = decode(known)
  record['blob'] = args[2]
  record['blob_bytes'] = tonumber(args[3])
  redis.call('HSET', keys[1], args[1], cjson.encode(record))
  return 1
end)

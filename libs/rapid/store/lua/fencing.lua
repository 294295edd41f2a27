-- Commands of a fenced write, with the fewest and most words of each. Only those of PUBLISH name no key.
local FENCED_COMMANDS = {HDEL = {3, 64}, HSET = {4, 64}, PUBLISH = {3, 3}, SET = {3, 3}, XADD = {5, 64}}
local MAX_COMMANDS, MAX_EXPECTED = 256, 8

-- Returns why a write under this token is refused, or nil.
local function refused(record, publisher, epoch, fence, holder)
  local run = document(record)
  if not run or run['epoch'] ~= tonumber(epoch) then return 'epoch' end
  if fence == '' then return nil end
  local lease = document(publisher)
  if not lease then return 'lease' end
  if lease['released'] or lease['fence'] ~= tonumber(fence) or lease['holder'] ~= holder then return 'lease' end
  return nil
end

-- Returns a command without its prefix ONCE, idempotency keys and key. Raises an error unless it is one of
-- FENCED_COMMANDS on a declared key.
local function fenced_command(words, declared)
  local first = 1
  if words[1] == 'ONCE' then
    first = 4
    if not declared[words[2]] then error('fenced_write: the keys of ONCE are not declared') end
  end
  local limits = FENCED_COMMANDS[words[first]]
  local count = #words - first + 1
  if not limits or count < limits[1] or count > limits[2] then
    error('fenced_write: only HDEL, HSET, PUBLISH, SET and XADD of at most 64 words are allowed')
  end
  for _, word in ipairs(words) do
    if type(word) ~= 'string' then error('fenced_write: a word is not a string') end
  end
  if words[first] ~= 'PUBLISH' and not declared[words[first + 1]] then
    error('fenced_write: the key of ' .. words[first] .. ' is not declared')
  end
  return first
end

-- Runs commands if the token is valid and each expected key has its text. Keys: those that the call writes.
-- Arguments: epoch, fence, holder, JSON [[key, text], ...] (without a text the key must not exist), JSON
-- [command, ...], key of the record, key of the publisher's lease, maximum of idempotency keys; optionally a key that
-- the call sets, and its expiry in ms. A call that finds this key was applied before. Keys that are only read are
-- arguments, because Redis requires write access to declared keys.
register('fenced_write', 10, function(keys, args)
  local applied = args[9]
  if applied and redis.call('EXISTS', applied) == 1 then return 'written' end
  local why = refused(args[6], args[7], args[1], args[2], args[3])
  if why then return why end
  local expected, commands = cjson.decode(args[4]), cjson.decode(args[5])
  if #expected > MAX_EXPECTED or #commands > MAX_COMMANDS then
    error('fenced_write: at most ' .. MAX_EXPECTED .. ' expected keys and ' .. MAX_COMMANDS .. ' commands are allowed')
  end
  for _, pair in ipairs(expected) do
    if redis.call('GET', pair[1]) ~= (pair[2] or false) then return 'moved' end
  end
  local declared, first = {}, {}
  for _, key in ipairs(keys) do declared[key] = true end
  for i, words in ipairs(commands) do first[i] = fenced_command(words, declared) end
  for i, words in ipairs(commands) do
    if first[i] == 1 or record_key(words[2], words[3], args[8]) then redis.call(unpack(words, first[i])) end
  end
  if applied then redis.call('SET', applied, '', 'PX', args[10]) end
  return 'written'
end)

-- Acquires the publisher's lease. A lease is free when it is missing, released or expired, or when the caller knows
-- that its holder is dead. Keys: publisher, record. Arguments: holder, process, seconds, dead holder.
register('acquire_publisher', 4, function(keys, args)
  local run = document(keys[2])
  if not run then return {'no run', '', ''} end
  local now = now_seconds()
  local lease = document(keys[1])
  local fence = lease and lease['fence'] or 0
  local mine = lease and lease['holder'] == args[1] and not lease['released']
  if lease and not mine and not lease['released'] and now < lease['until'] and lease['holder'] ~= args[4] then
    return {'held', redis.call('GET', keys[1]), tostring(lease['until'] - now)}
  end
  if not mine then fence = fence + 1 end
  redis.call('SET', keys[1], cjson.encode({
    holder = args[1], process = args[2], fence = fence, released = false, ['until'] = now + tonumber(args[3]),
    since = mine and lease['since'] or now}))
  return {'acquired', string.format('%d', fence), string.format('%d', run['epoch'])}
end)

-- Renews the publisher's lease. A lease with a lower fence means that the server lost its last writes, so the caller's
-- lease is restored, unless the run is in another epoch. Keys: publisher, record. Arguments: epoch, fence, holder,
-- seconds, process.
register('renew_publisher', 5, function(keys, args)
  local now = now_seconds()
  local lease = document(keys[1])
  local lost = not lease or lease['fence'] < tonumber(args[2])
  local why = refused(keys[2], keys[1], args[1], lost and '' or args[2], args[3])
  if why then return why end
  if lost then
    lease = {holder = args[3], process = args[5], fence = tonumber(args[2]), released = false, since = now}
  end
  lease['until'] = now + tonumber(args[4])
  redis.call('SET', keys[1], cjson.encode(lease))
  return 'renewed'
end)

-- Releases the publisher's lease. Key: publisher. Argument: holder.
register('release_publisher', 1, function(keys, args)
  local lease = document(keys[1])
  if not lease or lease['holder'] ~= args[1] then return 0 end
  lease['released'] = true
  redis.call('SET', keys[1], cjson.encode(lease))
  return 1
end)

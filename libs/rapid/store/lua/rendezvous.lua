-- The group is one JSON document: its round, the members of that round, and the nodes that wait for the next one. A
-- member that came back to wait has left its round. The next round forms when no member of the present one is still at
-- work, and either all nodes wait, or at least the minimum does and no other has come for the time of `patience`.
-- Key: the document. Arguments: command, node, token of this join, lease in ms, expiry of the document in ms; of the
-- command "join": host, port, minimum, maximum, patience in ms.
register('rendezvous', 10, function(keys, args)
  local now = now_ms()
  local group = document(keys[1]) or {round = 0, order = {}, members = {}, waiting = {}, changed = now}
  local command, node, token, lease = args[1], args[2], args[3], tonumber(args[4])
  local member = group.members[node]
  local own = member and member.token == token

  local function store()
    redis.call('SET', keys[1], cjson.encode(group), 'PX', args[5])
  end

  if command == 'leave' then
    if own then group.members[node] = nil end
    local waiter = group.waiting[node]
    if waiter and waiter.token == token then group.waiting[node] = nil end
    store()
    return ''
  end

  if command == 'beat' then
    if not own then return '-1' end
    member.beat = now
    store()
    local members, waiting, returned = 0, 0, 0
    for _ in pairs(group.members) do members = members + 1 end
    for other, waiter in pairs(group.waiting) do
      if waiter.beat + lease > now then
        waiting = waiting + 1
        if group.members[other] then returned = returned + 1 end
      end
    end
    -- A full group needs no further node.
    if members >= tonumber(args[6]) and returned == 0 then return '0' end
    return tostring(waiting)
  end

  if own then return cjson.encode({order = group.order, round = group.round, host = group.host, port = group.port}) end
  for other, waiter in pairs(group.waiting) do
    if waiter.beat + lease <= now then
      group.waiting[other] = nil
      group.changed = now
    end
  end
  local waiter = group.waiting[node]
  if not waiter or waiter.token ~= token then
    group.waiting[node] = {token = token, host = args[6], port = tonumber(args[7])}
    group.changed = now
  end
  group.waiting[node].beat = now
  local working, order = {}, {}
  for other, one in pairs(group.members) do
    if not group.waiting[other] and one.beat + lease > now then table.insert(working, other) end
  end
  for other in pairs(group.waiting) do table.insert(order, other) end
  -- Shorter names first: the order of ordinals at their end.
  table.sort(order, function(a, b) if #a ~= #b then return #a < #b end return a < b end)
  local minimum, maximum = tonumber(args[8]), tonumber(args[9])
  if #working > 0 or #order < minimum or (#order < maximum and group.changed + tonumber(args[10]) > now) then
    store()
    return cjson.encode({waiting = #order, working = working})
  end
  group.members, group.order = {}, {}
  for i = 1, math.min(#order, maximum) do
    local other = order[i]
    group.members[other] = {token = group.waiting[other].token, beat = now}
    if i == 1 then group.host, group.port = group.waiting[other].host, group.waiting[other].port end
    group.waiting[other] = nil
    table.insert(group.order, other)
  end
  group.round, group.changed = group.round + 1, now
  store()
  if not group.members[node] then return cjson.encode({waiting = #order - maximum, working = group.order}) end
  return cjson.encode({order = group.order, round = group.round, host = group.host, port = group.port})
end)

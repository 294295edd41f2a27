-- Helpers of all functions. The Python module functions.py puts `LIBRARY`, the library's name, before this text.
--
-- A service may call every function with any keys and arguments. Redis checks each command of a function against the
-- caller's own keys and commands. The limits here and in the functions bound how long one call blocks the server.

local MAX_KEYS, MAX_CALL_BYTES, MAX_DOCUMENT_BYTES = 64, 8 * 1024 * 1024, 1024 * 1024

-- Registers a function that takes at most `most` arguments. Flags are those of redis.register_function. Without the
-- flag allow-oom Redis refuses the whole call when its memory is full, so no function stops halfway.
local function register(name, most, callback, flags)
  redis.register_function{function_name = LIBRARY .. '_' .. name, flags = flags or {}, callback = function(keys, args)
    if #keys > MAX_KEYS or #args > most then
      return redis.error_reply('ERR ' .. name .. ': more than ' .. MAX_KEYS .. ' keys or ' .. most .. ' arguments')
    end
    local bytes = 0
    for _, text in ipairs(keys) do bytes = bytes + #text end
    for _, text in ipairs(args) do bytes = bytes + #text end
    if bytes > MAX_CALL_BYTES then
      return redis.error_reply('ERR ' .. name .. ': more than ' .. MAX_CALL_BYTES .. ' bytes of arguments')
    end
    return callback(keys, args)
  end}
end

-- Returns the server's clock in milliseconds.
local function now_ms()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

-- Returns the server's clock in seconds.
local function now_seconds()
  local t = redis.call('TIME')
  return tonumber(t[1]) + tonumber(t[2]) / 1e6
end

-- Decodes a stored JSON document, of limited size because a service may have stored any text.
local function decode(text)
  if #text > MAX_DOCUMENT_BYTES then error('a document is larger than ' .. MAX_DOCUMENT_BYTES .. ' bytes') end
  return cjson.decode(text)
end

-- Returns the JSON document of a key, or nil.
local function document(key)
  local text = redis.call('GET', key)
  return text and decode(text) or nil
end

-- Lets a client find out whether the library is loaded.
register('probe', 0, function() return LIBRARY end)

-- JSON decoder. Returns a table with `decode(text)`, which raises an error for invalid JSON. `null` becomes nil.

local ESCAPES = {b = '\b', f = '\f', n = '\n', r = '\r', t = '\t', ['"'] = '"', ['/'] = '/', ['\\'] = '\\'}
local LITERALS = {['true'] = true, ['false'] = false}
local DEPTH = 32

local value

local function fail(position, wanted)
    error('invalid JSON at byte ' .. position .. ': expected ' .. wanted, 0)
end

local function skip(text, position)
    return text:find('[^ \t\r\n]', position) or #text + 1
end

-- Encodes a code point of the basic plane as UTF-8.
local function utf8(code)
    if code < 0x80 then return string.char(code) end
    local low = 0x80 + code % 0x40
    local rest = math.floor(code / 0x40)
    if code < 0x800 then return string.char(0xC0 + rest, low) end
    return string.char(0xE0 + math.floor(rest / 0x40), 0x80 + rest % 0x40, low)
end

local function read_string(text, position)
    local parts = {}
    position = position + 1
    while true do
        local stop = text:find('["\\]', position) or fail(#text + 1, 'end of a string')
        table.insert(parts, text:sub(position, stop - 1))
        if text:sub(stop, stop) == '"' then return table.concat(parts), stop + 1 end
        local escape = text:sub(stop + 1, stop + 1)
        position = stop + 2
        if escape == 'u' then
            local digits = text:match('^%x%x%x%x', position) or fail(position, 'four hexadecimal digits')
            table.insert(parts, utf8(tonumber(digits, 16)))
            position = position + 4
        else
            table.insert(parts, ESCAPES[escape] or fail(stop, 'an escape sequence'))
        end
    end
end

-- Reads the items of an array or the members of an object, up to the closing character.
local function read_items(text, position, close, depth, read_item)
    position = skip(text, position + 1)
    if text:sub(position, position) == close then return position + 1 end
    while true do
        position = skip(text, read_item(position, depth))
        local next_one = text:sub(position, position)
        if next_one == close then return position + 1 end
        if next_one ~= ',' then fail(position, '"," or "' .. close .. '"') end
        position = skip(text, position + 1)
    end
end

local function read_array(text, position, depth)
    local array = {}
    local count = 0
    local after = read_items(text, position, ']', depth, function(at)
        count = count + 1
        array[count], at = value(text, at, depth)
        return at
    end)
    return array, after
end

local function read_object(text, position, depth)
    local object = {}
    local after = read_items(text, position, '}', depth, function(at)
        if text:sub(at, at) ~= '"' then fail(at, 'a key') end
        local key
        key, at = read_string(text, at)
        at = skip(text, at)
        if text:sub(at, at) ~= ':' then fail(at, '":"') end
        object[key], at = value(text, skip(text, at + 1), depth)
        return at
    end)
    return object, after
end

function value(text, position, depth)
    if depth == 0 then fail(position, 'at most ' .. DEPTH .. ' levels') end
    local first = text:sub(position, position)
    if first == '{' then return read_object(text, position, depth - 1) end
    if first == '[' then return read_array(text, position, depth - 1) end
    if first == '"' then return read_string(text, position) end
    local word = text:match('^%a+', position)
    if word == 'null' then return nil, position + 4 end
    if word ~= nil and LITERALS[word] ~= nil then return LITERALS[word], position + #word end
    local digits = text:match('^-?%d+%.?%d*[eE]?[+-]?%d*', position)
    local number = digits and tonumber(digits)
    if number == nil then fail(position, 'a value') end
    return number, position + #digits
end

local json = {}

function json.decode(text)
    local result, position = value(text, skip(text, 1), DEPTH)
    if skip(text, position) <= #text then fail(position, 'the end') end
    return result
end

return json

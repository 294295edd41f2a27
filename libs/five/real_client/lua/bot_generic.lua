-- Bot of every hero: executes each order of its team's action file once.
--
-- The launcher replaces `actions_t<team>.lua`, which returns a table: `sequence` rises with every file, `batches` are the
-- orders of the last files, so that none is lost when a file is replaced unread, and the game may go on without another
-- file until `through` (game seconds). From then on Think() waits, and the game with it: a bot that does not return
-- stops the game clock. A line `FIVE {...}` of the console log reports that the bot is ready, and what it has done.

local orders = require('bots/five_orders')
local settings = require('bots/five_session')

local TEAM = GetTeam()
local CONTROL = settings.control[TEAM]
local ACTION_FILE = 'bots/actions_t' .. TEAM
local TICK = 1 / 30
local REASON_LENGTH = 80

-- By player: whether the client loads this file once for each bot or once for the team makes no difference.
local bots = {}

-- Returns the current action file's content, or nil if there is none yet.
local function read_actions()
    local chunk = loadfile(ACTION_FILE)
    local actions = chunk and chunk()
    return type(actions) == 'table' and type(actions.sequence) == 'number' and actions or nil
end

local function report(player, kind, fields)
    local line = 'FIVE {"kind":"%s","team":%d,"player":%d,"time":%.3f%s}'
    print(string.format(line, kind, TEAM, player, DotaTime(), fields))
end

local function plain(text)
    return (tostring(text):gsub('[^%w _.,:/-]', ' '):sub(1, REASON_LENGTH))
end

-- Executes the orders that are due, each once, and reports them.
local function execute(bot, player, state)
    local done, waiting = {}, {}
    for _, order in ipairs(state.pending) do
        if DotaTime() < order.due then
            table.insert(waiting, order)
        else
            local refused = orders.run(bot, order.action)
            local count = done[order.sequence] or {executed = 0, refused = 0}
            done[order.sequence] = count
            local result = refused and 'refused' or 'executed'
            count[result] = count[result] + 1
            count.reason = refused or count.reason
        end
    end
    state.pending = waiting
    for sequence, count in pairs(done) do
        local reason = count.reason and ',"reason":"' .. plain(count.reason) .. '"' or ''
        report(player, 'done', string.format(',"sequence":%d,"executed":%d,"refused":%d%s', sequence, count.executed,
                                             count.refused, reason))
    end
end

-- Queues the bot's orders of the batches that it has not seen.
local function accept(actions, player, state)
    for _, batch in ipairs(actions.batches or {}) do
        for _, action in ipairs(batch.sequence > state.sequence and batch.actions or {}) do
            if action.player == player then
                local due = DotaTime() + ((action.actionDelay or 0) - 0.5) * TICK
                table.insert(state.pending, {action = action, due = due, sequence = batch.sequence})
            end
        end
    end
    state.sequence = actions.sequence
    state.through = actions.through or math.huge
end

local function agent_think()
    local bot = GetBot()
    local player = bot:GetPlayerID()
    local state = bots[player]
    if state == nil then
        state = {sequence = 0, through = math.huge, pending = {}}
        bots[player] = state
        report(player, 'ready', ',"hero":"' .. plain(bot:GetUnitName()) .. '"')
    end
    local actions = read_actions()
    while DotaTime() >= state.through - TICK / 2 and (actions == nil or actions.sequence <= state.sequence) do
        actions = read_actions()
    end
    if actions ~= nil and actions.sequence > state.sequence then accept(actions, player, state) end
    execute(bot, player, state)
end

-- Without Think() the client's own bot plays the hero.
if CONTROL == 'agent' then
    Think = agent_think
elseif CONTROL == 'idle' then
    function Think() end
end

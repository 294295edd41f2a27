-- The client's own bots level abilities, use items and couriers, and buy back unless these functions exist. Settings say
-- whether they learn and use the courier for our bots too.

local settings = require('bots/five_session')
local team = GetTeam()

if settings.control[team] ~= 'builtin' then
    function AbilityUsageThink() end
    function ItemUsageThink() end
    function BuybackUsageThink() end
end
if not settings.scripted[team] then
    function AbilityLevelUpThink() end
    function CourierUsageThink() end
end

-- The client's own bots level abilities, use items and couriers, and buy back unless these functions exist.

if require('bots/five_settings').control[tostring(GetTeam())] ~= 'builtin' then
    function AbilityLevelUpThink() end
    function AbilityUsageThink() end
    function ItemUsageThink() end
    function CourierUsageThink() end
    function BuybackUsageThink() end
end

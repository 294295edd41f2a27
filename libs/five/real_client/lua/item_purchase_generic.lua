-- The client's own bots buy items unless this function exists. Only the built-in bots shall buy.

if require('bots/five_settings').control[tostring(GetTeam())] ~= 'builtin' then
    function ItemPurchaseThink() end
end

-- The client's own bots buy items unless this function exists. Settings say whether they buy for our bots too.

if not require('bots/five_session').scripted[GetTeam()] then
    function ItemPurchaseThink() end
end

-- Hero selection: each bot of a team picks the hero that the session lists at its place.

local settings = require('bots/five_settings')

function Think()
    local heroes = settings.heroes[tostring(GetTeam())]
    for place, player in ipairs(GetTeamPlayers(GetTeam())) do
        if heroes[place] ~= nil and IsPlayerBot(player) and IsPlayerInHeroSelectionControl(player) then
            SelectHero(player, heroes[place])
        end
    end
end

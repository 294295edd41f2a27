-- Hero selection: each bot of a team picks the hero that the session lists at its place.

local settings = require('bots/five_session')

function Think()
    local heroes = settings.heroes[GetTeam()]
    for place, player in ipairs(GetTeamPlayers(GetTeam())) do
        if heroes[place] ~= nil and IsPlayerBot(player) and IsPlayerInHeroSelectionControl(player) then
            SelectHero(player, heroes[place])
        end
    end
end

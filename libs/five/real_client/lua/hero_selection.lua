-- Hero selection: each bot of a team picks the hero that the session lists for its seat.

local settings = require('bots/five_session')

function Think()
    local heroes = settings.heroes[GetTeam()]
    for seat, player in ipairs(GetTeamPlayers(GetTeam())) do
        if heroes[seat] ~= nil and IsPlayerBot(player) and IsPlayerInHeroSelectionControl(player) then
            SelectHero(player, heroes[seat])
        end
    end
end

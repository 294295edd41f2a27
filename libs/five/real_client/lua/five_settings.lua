-- Settings of a session, which the launcher writes as JSON: `control`, `heroes` and `scripted` by team ("2" Radiant, "3"
-- Dire).

return require('bots/five_json').decode(require('bots/five_session'))

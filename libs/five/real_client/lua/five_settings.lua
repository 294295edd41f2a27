-- Settings of a session, which the launcher writes as JSON: `control` and `heroes` by team ("2" Radiant, "3" Dire).

return require('bots/five_json').decode(require('bots/five_session'))

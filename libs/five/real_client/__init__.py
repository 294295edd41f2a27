"""Launcher of the real game: a dedicated Dota 2 client whose bots follow orders from this process.

World states come over sockets (`frames`, `world_state_reader`); orders go to our Lua bots (`lua/`) in files that are
replaced in one step (`action_files`); the console log tells what the bots did and who won (`console_log`). `session`
plays a game in lockstep. docs/real-client.md names the sources of the facts about a client: none was at hand.
"""

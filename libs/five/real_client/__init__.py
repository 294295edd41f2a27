"""Launcher of the real game: a dedicated Dota 2 client whose bots follow orders from this process.

Orders go to our Lua bots (`lua/`) in files that are replaced in one step (`action_files`); `bot_folder` links the bots
into an installation. No real client was at hand: each module names the source of its facts about one.
"""

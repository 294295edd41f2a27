// What a game is played with.
#pragma once

namespace dota {

struct ActionVocabulary;  // rules/actions.hpp

// What a game is played with; fixed while it runs. Filled from dota.config.GameConfig.
struct GameSettings {
  int heroes_per_team = 5;
  bool mode_1v1_mid = false;
  int kills_to_win = 0;     // 1v1: 2
  bool tower_wins = false;  // 1v1: the first tier 1 tower of mid ends the game
  bool lane_enabled[3] = {true, true, true};
  bool neutrals = true, roshan = true, runes = true, courier_scripted = false;
  float max_game_s = 3600;  // then a draw
  float start_s = -90;      // game time at which play begins
  float offset_cell = 100;  // world units an offset step is worth
  bool buyback = true;
  bool hide_unseen = false;      // cooldowns and charges of enemies, which a player cannot see, are not observed
  int timesteps_per_action = 1;  // a policy chooses in every so many timesteps; between, its heroes go on
  bool aggro_orders = false;     // attack orders on own creeps above half health are offered: they shed lane aggro
  bool commit_windups = false;  // a policy that begins an attack or a cast is offered nothing else until it is out
  int commit_moves = 0;         // choices after a move or follow in which a policy is offered neither
  bool save_consumables = false;  // a policy is offered what restores health or mana only when it is needed
  // Consumables the scripted buyer keeps in stock (charges held) until the game time given, unless a hero's are
  // drawn (random_consumables).
  int keep_tango = 1, keep_salve = 1, keep_clarity = 1, keep_teleport = 1;
  float consumables_until_s = 600;
  float upkeep_share = 0.2f;  // most of a hero's income that goes on consumables, scrolls and wards
  // Randomisation: standard deviations as fractions, those of armor, regeneration and magic resistance in points
  // of theirs; probabilities; all 0 = off.
  float random_attributes = 0, random_armor = 0, random_move_speed = 0, random_hp_regen = 0, random_mana_regen = 0,
        random_magic_resist = 0, random_gold = 0, random_xp = 0, random_item_drop = 0, random_item_insert = 0,
        random_consumables = 0, random_lane = 0, random_skill = 0, random_roshan = 0;
  float random_lane_until_s = 600;            // latest game time to which an assignment of lanes is drawn
  const ActionVocabulary* actions = nullptr;  // indexed by Command::action; owned by the creator of the game
};

}  // namespace dota

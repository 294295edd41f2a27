// Numbers of a client's animations (`anim_activity`), from the game's own enumeration of activities.
#pragma once

namespace dota::activity {

constexpr int kRun = 1502, kAttack = 1503, kAttack2 = 1504;
constexpr int kCast = 1510;  // of the first ability slot; the others follow

}  // namespace dota::activity

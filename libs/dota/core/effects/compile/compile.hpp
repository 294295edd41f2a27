// The compiler from the data's effect nodes to flat programs.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "effects/program_node.hpp"

namespace dota {

// Primitives that act once and leave nothing behind have no modifier that carries their name.
bool leaves_modifier(const EffectNode& n);
// EffectNode::rests of a node that is complete.
bool rests_while_it_lasts(const EffectNode& n);
bool rests_on_others(const EffectNode& n);
bool gives_fixed_stats(const EffectNode& n);
// Primitives that, standing at a program's root without a trigger, act for as long as they are learned or held.
bool passive_at_root(const EffectNode& n, bool passive_behavior);
// The stat of a node's key, with the names that only effects use; Stat::Count when it is not a stat.
Stat node_stat(const std::string& key, float* sign);
bool list_holds(const Node* list, const std::string& word);  // false if it is not a list

// Compiles one ability's, item's or rune's nodes. Every error is a std::runtime_error that names the ability.
class ProgramCompiler {
 public:
  ProgramCompiler(const Node& ability, std::string name, Tables& tables);
  Program compile();

 private:
  [[noreturn]] void fail(const std::string& what) const;
  void missing(const std::string& what);
  std::uint16_t children(const Node& list, std::uint16_t* count);
  void share_modifiers(std::uint16_t first, std::uint16_t count);
  void fill(std::uint16_t index, const Node& node, bool root);
  void key(EffectNode& n, const std::string& key, const Node& v, const Node& node);
  void stats(EffectNode& n, const Node& list, StatSet set);
  void check_trigger(const EffectNode& n, const PrimitiveSpec& spec, bool root) const;
  bool word(EffectNode& n, const std::string& key, const Node& v);
  Value value(const std::string& key, const Node& v);
  Value atom(const std::string& key, const std::string& text);
  void add(Value& sum, const Value& term) const;
  void set(EffectNode& n, Role r, Value v);

  const Node& ability_;
  std::string name_;
  Tables& tables_;
  Program out_;
  std::size_t root_ = 0;              // the root that is being compiled
  std::set<std::size_t> incomplete_;  // roots that need something not built
  std::string stack_;                 // name of the stack this program gains
  bool passive_behavior_ = false, is_item_ = false;
};

}  // namespace dota

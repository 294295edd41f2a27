// Numbers of a program: special values, fields, sums, formulas, stat lists.
#include <algorithm>

#include "data/stat_names.hpp"
#include "effects/compile/compile.hpp"

namespace dota {

namespace {

// Whether a text is anywhere within the node: a special that an effect names changes no other number.
bool named(const Node* n, const std::string& text) {
  if (!n) return false;
  if (n->is(Node::Type::String)) return n->string == text;
  return std::any_of(n->list.begin(), n->list.end(), [&](const Node& x) { return named(&x, text); }) ||
         std::any_of(n->object.begin(), n->object.end(), [&](const auto& x) { return named(&x.second, text); });
}

}  // namespace

Stat node_stat(const std::string& key, float* sign) {
  if (key == "evasion_minus") return parse_stat("evasion_pct_minus", sign);
  if (key == "hp_regen_pct_minus") return parse_stat("hp_regen_amp_pct_minus", sign);
  return parse_stat(key, sign);
}

void ProgramCompiler::stats(EffectNode& n, const Node& list, StatSet set) {
  if (!list.is(Node::Type::Object)) fail("stats of " + std::string(primitive_name(n.prim)) + " are not an object");
  for (const auto& [k, v] : list.object) {
    if (k == "range" && v.is(Node::Type::String) && v.string == "unlimited_on_target") {
      n.unlimited_range = true;
      continue;
    }
    NodeStat s;
    float sign = 1;
    s.stat = node_stat(k, &sign);
    if (s.stat == Stat::Count) {
      missing(std::string(primitive_name(n.prim)) + ".stats." + k);
      continue;
    }
    // What boots give while they are held (Tranquil Boots) does not add to what other boots give.
    if (is_item_ && n.prim == Prim::PassiveStats && s.stat == Stat::MsPct) s.stat = Stat::BootsMsPct;
    if (is_item_ && n.prim == Prim::PassiveStats && s.stat == Stat::MsFlat) s.stat = Stat::BootsMsFlat;
    s.set = set;
    const bool pair = v.is(Node::Type::List);  // [near, far]
    if (pair && v.list.size() != 2) fail("stat '" + k + "' by distance needs two numbers");
    s.value = value(k, pair ? v.list[0] : v);
    if (pair) s.far = value(k, v.list[1]);
    if (sign < 0)
      for (Value* x : {&s.value, &s.far}) {
        for (Num* ranks : {&x->base, &x->scepter})
          for (float& number : ranks->v)
            number = -number;
        for (UnlinkedTalent& term : x->unlinked)
          term.sign = -term.sign;
      }
    n.stats.push_back(std::move(s));
  }
}

void ProgramCompiler::set(EffectNode& n, Role r, Value v) {
  std::int8_t& at = n.role[ordinal(r)];
  if (at >= 0) {
    n.values[at] = std::move(v);
    return;
  }
  at = static_cast<std::int8_t>(n.values.size());
  n.values.push_back(std::move(v));
}

void ProgramCompiler::add(Value& sum, const Value& term) const {
  const int n = std::max<int>(sum.base.n, term.base.n);
  Num total;
  total.n = static_cast<std::uint8_t>(n);
  for (int i = 1; i <= n; ++i)
    total.v[i - 1] = sum.base.at(i) + term.base.at(i);
  if (sum.scepter.given() || term.scepter.given()) {
    const Num& left = sum.scepter.given() ? sum.scepter : sum.base;
    const Num& right = term.scepter.given() ? term.scepter : term.base;
    Num upgraded;
    upgraded.n = static_cast<std::uint8_t>(std::max<int>(left.n, right.n));
    for (int i = 1; i <= upgraded.n; ++i)
      upgraded.v[i - 1] = left.at(i) + right.at(i);
    sum.scepter = upgraded;
  }
  sum.base = total;
  sum.reaches = sum.reaches || term.reaches;
  sum.unlinked.insert(sum.unlinked.end(), term.unlinked.begin(), term.unlinked.end());
}

Value ProgramCompiler::value(const std::string& key, const Node& v) {
  Value out;
  if (v.is(Node::Type::Number)) {
    out.base.n = 1;
    out.base.v[0] = static_cast<float>(v.number);
    return out;
  }
  if (v.is(Node::Type::List)) {
    for (const Node& term : v.list)
      add(out, value(key, term));
    if (!out.base.given()) fail("'" + key + "' is an empty list");
    return out;
  }
  if (!v.is(Node::Type::String)) fail("'" + key + "' is neither a number, a name nor a list");
  const std::string& text = v.string;
  const std::size_t op = text.find_first_of("*/");
  if (op == std::string::npos) return atom(key, text);
  // counter (* or /) number
  out = atom(key, text.substr(op + 1));
  const std::string counter = text.substr(0, op);
  out.divides = text[op] == '/';
  const std::size_t open = counter.find('(');
  const std::string name = counter.substr(0, open);
  std::string stack = stack_;
  if (open != std::string::npos) {
    if (counter.back() != ')') fail("'" + key + "': '" + text + "' is not a formula");
    stack = counter.substr(open + 1, counter.size() - open - 2);
  }
  if (name == "minutes") {
    out.factor = Factor::Minutes;
  } else if (name == "stacks" || name == "target_stacks") {
    if (stack.empty()) fail("'" + key + "': '" + text + "' names no stack");
    out.factor = name == "stacks" ? Factor::OwnStacks : Factor::TargetStacks;
    out.stack = intern_modifier(tables_, "stack_" + stack);
  } else {
    fail("'" + key + "': counter '" + counter + "' is unknown");
  }
  return out;
}

Value ProgramCompiler::atom(const std::string& key, const std::string& text) {
  Value out;
  if (text.empty()) fail("'" + key + "' is empty");
  const Node* list = nullptr;
  if (text[0] == '$') {
    const Node* specials = ability_.find("specials");
    const Node* s = specials ? specials->find(text.substr(1)) : nullptr;
    if (!s) fail("'" + key + "': special value '" + text + "' is missing");
    list = s->find("v");
    const Node* talent = s->find("talent");
    if (talent && talent->is(Node::Type::String))
      out.unlinked.push_back(
          {talent->string, s->str("talent_field"), s->str("talent_op") == "subtract" ? -1.0f : 1.0f});
  } else if (text[0] == '@') {
    list = ability_.find(text.substr(1));
    if (!list) fail("'" + key + "': field '" + text + "' is missing");
    out.reaches = text == "@cast_range";
    const Node* fields = ability_.find("fields");
    const Node* change = fields ? fields->find(text.substr(1)) : nullptr;
    if (change && change->find("talent") && change->str("talent_op") != "unlimited")
      out.unlinked.push_back({change->str("talent"), "", change->str("talent_op") == "subtract" ? -1.0f : 1.0f});
  } else {
    fail("'" + key + "': '" + text + "' is neither $special nor @field");
  }
  // "damage_scepter" beside "damage", unless an effect names it or the game no longer uses it.
  const std::string upgraded = text.substr(1) + "_scepter";
  if (const Node* specials = ability_.find("specials"))
    if (const Node* s = specials->find(upgraded);
        s && !s->find("unused") && !named(ability_.find("effects"), "$" + upgraded))
      if (const Node* v = s->find("v"); v && v->is(Node::Type::List))
        for (const Node& x : v->list)
          if (out.scepter.n < out.scepter.v.size()) out.scepter.v[out.scepter.n++] = static_cast<float>(x.number);
  if (list && list->is(Node::Type::Number)) {
    out.base.n = 1;
    out.base.v[0] = static_cast<float>(list->number);
    return out;
  }
  if (!list || !list->is(Node::Type::List) || list->list.empty()) fail("'" + text + "' has no values");
  if (list->list.size() > out.base.v.size()) fail("'" + text + "' has more than 7 ranks");
  for (const Node& x : list->list) {
    if (!x.is(Node::Type::Number)) fail("'" + text + "' holds something other than numbers");
    out.base.v[out.base.n++] = static_cast<float>(x.number);
  }
  return out;
}

}  // namespace dota

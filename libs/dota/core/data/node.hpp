// A JSON value as the loader sees it. The binding builds it from Python's parsed JSON.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace dota {

struct Node {
  enum class Type { Null, Number, String, List, Object } type = Type::Null;
  double number = 0;
  std::string string;
  std::vector<Node> list;
  std::vector<std::pair<std::string, Node>> object;  // in file order

  // Defined below, where a pair of a name and a Node is a complete type: clang looks at it here otherwise.
  Node();
  ~Node();
  Node(const Node&);
  Node(Node&&) noexcept;
  Node& operator=(const Node&);
  Node& operator=(Node&&) noexcept;

  bool is(Type t) const { return type == t; }
  const Node* find(const std::string& key) const {
    for (const auto& [k, v] : object)
      if (k == key) return &v;
    return nullptr;
  }
  // Throws std::runtime_error naming the key when it is absent.
  const Node& at(const std::string& key) const {
    if (const Node* n = find(key)) return *n;
    throw std::runtime_error("game data: key '" + key + "' is missing");
  }
  float num(const std::string& key, float otherwise) const {
    const Node* n = find(key);
    return n && n->is(Type::Number) ? static_cast<float>(n->number) : otherwise;
  }
  float num(const std::string& key) const {
    const Node& n = at(key);
    if (!n.is(Type::Number)) throw std::runtime_error("game data: key '" + key + "' is not a number");
    return static_cast<float>(n.number);
  }
  std::string str(const std::string& key, const std::string& otherwise = "") const {
    const Node* n = find(key);
    return n && n->is(Type::String) ? n->string : otherwise;
  }
};

inline Node::Node() = default;
inline Node::~Node() = default;
inline Node::Node(const Node&) = default;
inline Node::Node(Node&&) noexcept = default;
inline Node& Node::operator=(const Node&) = default;
inline Node& Node::operator=(Node&&) noexcept = default;

}  // namespace dota
